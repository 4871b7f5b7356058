/** The two functions of @noble that the client calls. */
export declare const noble: {
  ml_kem768: {
    encapsulate(key: Uint8Array, message: Uint8Array): { cipherText: Uint8Array; sharedSecret: Uint8Array };
  };
  sha3_256(content: Uint8Array): Uint8Array;
};
