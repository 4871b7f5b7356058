// A device's client written from docs/wire/device.md alone: java Client.java LEADER RUN STUDY LINK NAME=VALUE... ("-" is missing).
// With -Droot=HEX, LEADER is a file with the manifest: every step is printed, and nothing is sent.
import java.io.ByteArrayOutputStream;
import java.math.*;
import java.net.URI;
import java.net.http.*;
import java.nio.*;
import java.nio.file.*;
import java.security.*;
import java.security.spec.*;
import java.util.*;
import java.util.regex.*;
import javax.crypto.*;
import javax.crypto.spec.*;

class Client {
  static final Pattern TOKEN = Pattern.compile("\\s*([{}\\[\\]:,]|\"(?:[^\"\\\\]++|\\\\.)*+\"|[^\\s{}\\[\\]:,\"]+)");
  static final Pattern ESCAPE = Pattern.compile("\\\\(?:u([0-9a-fA-F]{4})|(.))");
  static final Map<String, String> STEPS = new LinkedHashMap<>();
  static Matcher tokens;

  public static void main(String[] given) throws Exception {
    String leader = given[0], run = given[1];
    Matcher link = Pattern.compile("1\\.(0|[1-9]\\d{0,9})\\.([A-Z2-7]{26})\\.([A-Z2-7]{4})$").matcher(given[3]);
    require(link.find(), "no link");
    int index = Integer.parseUnsignedInt(link.group(1));
    byte[] code = unbase32(link.group(2));
    String check = base32(hash("privstats/devices/1/link", u(1, 0), "1." + link.group(1) + "." + link.group(2))).substring(0, 4);
    require(check.equals(link.group(3)) && base32(code).equals(link.group(2)), "a letter of the link is wrong");
    byte[] seed = step("seed", hkdf(code, new byte[0], "privstats/devices/1/identity"));
    PrivateKey key = KeyFactory.getInstance("Ed25519").generatePrivate(new EdECPrivateKeySpec(NamedParameterSpec.ED25519, seed));

    HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    String root = System.getProperty("root");
    String text = root != null ? Files.readString(Path.of(leader)) : http.send(HttpRequest.newBuilder(URI.create(leader + "/v1/runs/" + run)).build(), HttpResponse.BodyHandlers.ofString()).body();
    Map<String, Object> manifest = map(json(text));
    String said = (String) manifest.get("plan");
    byte[] runBytes = unhex(run), digest = step("plan digest", hash(said)), roster = unhex((String) manifest.get("roster"));
    require(hex(hash("privstats/devices/1/study", u(1, 0), u(1, runBytes.length), runBytes, digest, roster)).equals(given[2]), "another study");
    Map<String, Object> plan = map(json(said));
    Map<String, Object> schema = map(plan.get("schema")), cohort = map(plan.get("cohort"));
    require(plan.get("version").equals(1L), "a plan of another version");
    known(plan, "version schema cohort privacy aggregation devices");
    known(map(plan.get("aggregation")), "graph min_count protocol panel key_agreement");
    require(map(plan.get("aggregation")).getOrDefault("key_agreement", "mlkem768-x25519").equals("mlkem768-x25519"), "another key agreement");
    known(map(plan.get("privacy")), "model unit adjacency epsilon delta shares max_records_per_client");
    known(schema, "task transform variables tables");
    for (String name : List.of("clients", "min_survivors", "colluders")) require(manifest.get(name).equals(cohort.get(name)), "another cohort");
    List<Object> panel = list(map(plan.get("aggregation")).get("panel")), offers = list(manifest.get("offers")), segments = list(manifest.get("segments"));
    int helpers = panel.size() - 1;
    List<Object> numbers = new ArrayList<>(List.of(manifest.get("clients"), manifest.get("min_survivors"), manifest.get("colluders"), (long) helpers, helpers - 1L));
    List<Object> stated = new ArrayList<>(List.of("privstats/upload/3 X-Wing Ed25519 HKDF-SHA256 AES-256-GCM".getBytes(), "split", numbers, segments, digest));
    if ((boolean) manifest.get("noisy_helpers")) stated.add("noisy helpers");
    byte[] parameters = step("parameters", hash("privstats/upload/parameters", pack(stated))), all = new byte[0];
    List<byte[]> boxKeys = new ArrayList<>();
    for (int place = 0; place <= helpers; place++) {
      byte[] offer = unhex((String) offers.get(place)), identity = unhex((String) panel.get(place));
      byte[] boxKey = Arrays.copyOfRange(offer, 33, 1249), until = Arrays.copyOfRange(offer, 1249, 1257);
      require(offer[0] == place && Arrays.equals(identity, Arrays.copyOfRange(offer, 1, 33)), "another panel");
      require(verify(identity, join(label("offer-xwing"), parameters, roster, u(1, place), boxKey, until), Arrays.copyOfRange(offer, 1257, 1321)), "a bad offer");
      require(new BigInteger(1, until).longValue() > System.currentTimeMillis() / 1000, "a key has ended");
      boxKeys.add(boxKey);
      all = join(all, identity, boxKey);
    }
    byte[] context = step("context", hash(label("context"), parameters, roster, hash(label("panel"), all)));
    List<Object> segment = list(segments.get(0));
    require(schema.get("task").equals("counts") && segments.size() == 1, "this client measures count tables alone");
    byte[] drawn = root != null ? unhex(root) : fresh();
    byte[] report = step("report", report(context, boxKeys, index, key, vector(schema, given), (int) (long) segment.get(1), drawn));
    STEPS.forEach((name, value) -> { if (root != null) System.out.println(name + "=" + value); });
    if (root != null) return;
    HttpRequest put = HttpRequest.newBuilder(URI.create(leader + "/v1/runs/" + run + "/reports/" + link.group(1)))
        .header("Content-Type", "application/vnd.privstats.report").header("Privstats-Signature", hex(Arrays.copyOfRange(report, report.length - 64, report.length)))
        .PUT(HttpRequest.BodyPublishers.ofByteArray(report)).build();
    System.out.println(http.send(put, HttpResponse.BodyHandlers.ofString()).statusCode());
  }

  static long[] vector(Map<String, Object> schema, String[] given) {
    Map<String, Integer> cells = new HashMap<>(), sizes = new HashMap<>();
    for (Object each : list(schema.get("variables"))) {
      Map<String, Object> variable = map(each);
      known(variable, "name edges closed open values other missing");
      String name = (String) variable.get("name"), answer = null;
      for (String pair : given) if (pair.startsWith(name + "=")) answer = pair.substring(name.length() + 1);
      List<Object> edges = list(variable.get("edges")), values = list(variable.get("values"));
      require(answer != null, "nothing answers " + name);
      int named = edges == null ? values.size() : edges.size() - 1, cell = 0;
      boolean other = variable.containsKey("other"), missing = variable.containsKey("missing");
      int size = named + (other ? 1 : 0) + (missing ? 1 : 0);
      if (answer.equals("-")) cell = missing ? size - 1 : -1;
      else if (edges != null) cell = bin(variable, edges, Double.parseDouble(answer));
      else if ((cell = values.indexOf(answer)) < 0 && other) cell = named;
      require(cell >= 0, name + " has no such answer");
      cells.put(name, cell);
      sizes.put(name, size);
    }
    List<Long> vector = new ArrayList<>();
    for (Object table : list(schema.get("tables"))) {
      int at = 0, size = 1;
      for (Object name : list(table)) { at = at * sizes.get(name) + cells.get(name); size *= sizes.get(name); }
      for (int cell = 0; cell < size; cell++) vector.add(cell == at ? 4096L : 0L);
    }
    return vector.stream().mapToLong(Long::longValue).toArray();
  }

  static int bin(Map<String, Object> variable, List<Object> edges, double value) {
    String open = (String) variable.getOrDefault("open", "both");
    boolean right = "right".equals(variable.get("closed"));
    int last = edges.size() - 1, cell = 0;
    if (digits(value) < digits(edges.get(0)) && !open.matches("both|below") || digits(value) > digits(edges.get(last)) && !open.matches("both|above")) return -1;
    for (Object edge : edges.subList(1, last)) if (right ? digits(edge) < digits(value) : digits(edge) <= digits(value)) cell++;
    return cell;
  }

  static double digits(Object number) {
    return new BigDecimal(((Number) number).doubleValue()).round(new MathContext(15, RoundingMode.HALF_EVEN)).doubleValue();
  }

  static byte[] report(byte[] context, List<byte[]> boxKeys, int index, PrivateKey key, long[] vector, int bits, byte[] root) throws Exception {
    require(bits <= 32 && vector.length <= 65536, "this client has lanes of 32 bits and one tile");
    ByteBuffer lanes = ByteBuffer.allocate(4 * vector.length).order(ByteOrder.LITTLE_ENDIAN);
    for (long entry : vector) lanes.putInt((int) entry);
    byte[] sender = u(4, index);
    byte[] hedge = gcm(kdf(root, "hedge", context), new byte[12], new byte[0], join(sender, step("lanes", lanes.array())));
    byte[] secret = step("secret", kdf(join(root, hedge), "secret/" + index, context)), bodyKey = step("body key", kdf(secret, "body", context)), boxes = new byte[0];
    List<byte[]> contents = new ArrayList<>(List.of(bodyKey)), level = new ArrayList<>();
    for (int place = 1; place < boxKeys.size(); place++) {
      byte[] seed = step("seed " + place, kdf(secret, "seed/" + place, context));
      Cipher stream = Cipher.getInstance("AES/CTR/NoPadding");
      stream.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(step("stream " + place, kdf(seed, "stream/" + index, context)), "AES"), new IvParameterSpec(join(new byte[12], u(4, 2))));
      IntBuffer mask = ByteBuffer.wrap(stream.doFinal(new byte[4 * vector.length])).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer();
      for (int i = 0; i < vector.length; i++) vector[i] -= mask.get(i);
      contents.add(seed);
    }
    for (int place = 0; place < boxKeys.size(); place++) {
      byte[] box = box(secret, context, sender, place, boxKeys.get(place), contents.get(place));
      boxes = join(boxes, box);
      level.add(hash(label("box-hash"), u(1, place), box));
    }
    byte[] body = gcm(bodyKey, new byte[12], step("packed", packed(vector, bits)), new byte[0]);
    while (Integer.bitCount(level.size()) > 1) level.add(new byte[32]);
    while (level.size() > 1) {
      List<byte[]> above = new ArrayList<>();
      for (int i = 0; i < level.size(); i += 2) above.add(hash("privstats/secagg/2/node", u(1, 0), level.get(i), level.get(i + 1)));
      level = above;
    }
    Signature signer = Signature.getInstance("Ed25519");
    signer.initSign(key);
    signer.update(join(label("report"), context, sender, level.get(0)));
    return join(u(1, 1), pack(List.of(0L, context, (long) index, boxes, body, signer.sign())));
  }

  static byte[] packed(long[] vector, int bits) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    int column = 0, top = bits % 8, groups = vector.length / 8;
    for (int width : new int[] {4, 2, 1}) {
      if ((bits / 8 & width) == 0) continue;
      for (long entry : vector) for (int i = 0; i < width; i++) out.write((int) (entry >>> 8 * (column + i)));
      column += width;
    }
    BigInteger[] words = new BigInteger[groups + 1];
    Arrays.fill(words, BigInteger.ZERO);
    for (int i = 0; i < vector.length; i++) words[i / 8] = words[i / 8].or(BigInteger.valueOf(vector[i] >>> 8 * column & (1 << top) - 1).shiftLeft(i % 8 * top));
    for (int plane = 0; plane < top; plane++) for (int group = 0; group < groups; group++) out.write(words[group].shiftRight(8 * plane).intValue());
    for (int i = 0; i < (vector.length % 8 * top + 7) / 8; i++) out.write(words[groups].shiftRight(8 * i).intValue());
    return out.toByteArray();
  }

  static byte[] box(byte[] secret, byte[] context, byte[] sender, int place, byte[] receiver, byte[] content) throws Exception {
    byte[] ephemeral = step("ephemeral " + place, kdf(secret, "ephemeral/" + place, context)), nine = new byte[32], none = new byte[0];
    byte[] message = step("encapsulate " + place, kdf(secret, "encapsulate/" + place, context));
    nine[0] = 9;
    byte[] lattice = Arrays.copyOf(receiver, 1184), curve = Arrays.copyOfRange(receiver, 1184, 1216), enc = x25519(ephemeral, nine);
    byte[] drawn = sha3(512, message, sha3(256, lattice)), half = Arrays.copyOf(drawn, 32), suite = join("HPKE", u(2, 0x647a), u(2, 1), u(2, 2));
    byte[] shared = sha3(256, half, x25519(ephemeral, curve), enc, curve, "\\.//^\\");
    byte[] info = join(label("box"), context, sender, u(1, place));
    byte[] scheduled = join(u(1, 0), extract(suite, none, "psk_id_hash", none), extract(suite, none, "info_hash", info));
    byte[] inner = extract(suite, shared, "secret", none), ciphertext = encrypted(lattice, message, Arrays.copyOfRange(drawn, 32, 64));
    return join(ciphertext, enc, gcm(expand(suite, inner, "key", scheduled, 32), expand(suite, inner, "base_nonce", scheduled, 12), content, none));
  }

  // FIPS 203, algorithm 14 (K-PKE.Encrypt) for ML-KEM-768; a polynomial has 256 coefficients modulo Q.
  static final int Q = 3329;

  static byte[] encrypted(byte[] key, byte[] message, byte[] random) throws Exception {
    byte[] rho = Arrays.copyOfRange(key, 1152, 1184);
    int[][] y = new int[3][];
    for (int i = 0; i < 3; i++) y[i] = transformed(noise(random, i));
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (int row = 0; row < 4; row++) {
      int[] sum = new int[256], e = noise(random, 3 + row);
      for (int j = 0; j < 3; j++) {
        int[] a = row < 3 ? uniform(rho, row, j) : unpacked(Arrays.copyOfRange(key, 384 * j, 384 * (j + 1)));
        for (int i = 0; i < 128; i++) {
          long a0 = a[2 * i], a1 = a[2 * i + 1], b0 = y[j][2 * i], b1 = y[j][2 * i + 1];
          sum[2 * i] = (int) ((sum[2 * i] + a0 * b0 + a1 * b1 % Q * power(2 * reversed(i) + 1)) % Q);
          sum[2 * i + 1] = (int) ((sum[2 * i + 1] + a0 * b1 + a1 * b0) % Q);
        }
      }
      sum = restored(sum);
      int bits = row < 3 ? 10 : 4, held = 0, buffer = 0;
      for (int i = 0; i < 256; i++) {
        int value = sum[i] + e[i] + (row < 3 ? 0 : (message[i / 8] >> i % 8 & 1) * 1665);
        buffer |= (((value % Q << bits) + Q / 2) / Q & (1 << bits) - 1) << held;
        for (held += bits; held >= 8; held -= 8, buffer >>>= 8) out.write(buffer);
      }
    }
    return out.toByteArray();
  }

  static int[] uniform(byte[] rho, int i, int j) {
    byte[] drawn = shake(168, join(rho, u(1, i), u(1, j)), 1344);
    int[] out = new int[256];
    for (int at = 0, found = 0; found < 256; at += 3) {
      int low = drawn[at] & 255 | (drawn[at + 1] & 15) << 8, high = (drawn[at + 1] & 255) >> 4 | (drawn[at + 2] & 255) << 4;
      if (low < Q) out[found++] = low;
      if (high < Q && found < 256) out[found++] = high;
    }
    return out;
  }

  static int[] unpacked(byte[] twelve) {
    int[] out = new int[256];
    for (int i = 0; i < 128; i++) {
      out[2 * i] = twelve[3 * i] & 255 | (twelve[3 * i + 1] & 15) << 8;
      out[2 * i + 1] = (twelve[3 * i + 1] & 255) >> 4 | (twelve[3 * i + 2] & 255) << 4;
      require(out[2 * i] < Q && out[2 * i + 1] < Q, "a bad box key");
    }
    return out;
  }

  static int[] noise(byte[] random, int number) {
    byte[] drawn = shake(136, join(random, u(1, number)), 128);
    int[] out = new int[256];
    for (int i = 0; i < 256; i++) {
      int four = drawn[i / 2] >> i % 2 * 4 & 15;
      out[i] = Q + Integer.bitCount(four & 3) - Integer.bitCount(four & 12);
    }
    return out;
  }

  static int reversed(int seven) { return Integer.reverse(seven) >>> 25; }
  static int power(int exponent) { return BigInteger.valueOf(17).modPow(BigInteger.valueOf(exponent), BigInteger.valueOf(Q)).intValue(); }

  static int[] transformed(int[] f) {
    for (int size = 128, k = 1; size >= 2; size /= 2)
      for (int start = 0; start < 256; start += 2 * size) {
        int zeta = power(reversed(k++));
        for (int i = start; i < start + size; i++) {
          int t = zeta * (f[i + size] % Q) % Q;
          f[i + size] = (f[i] + Q - t) % Q;
          f[i] = (f[i] + t) % Q;
        }
      }
    return f;
  }

  static int[] restored(int[] f) {
    for (int size = 2, k = 127; size <= 128; size *= 2)
      for (int start = 0; start < 256; start += 2 * size) {
        int zeta = power(reversed(k--));
        for (int i = start; i < start + size; i++) {
          int t = f[i];
          f[i] = (t + f[i + size]) % Q;
          f[i + size] = zeta * (f[i + size] + Q - t) % Q;
        }
      }
    for (int i = 0; i < 256; i++) f[i] = f[i] * 3303 % Q;
    return f;
  }

  static byte[] sha3(int bits, Object... parts) throws Exception { return MessageDigest.getInstance("SHA3-" + bits).digest(join(parts)); }

  // FIPS 202: SHAKE128 has a rate of 168 bytes, SHAKE256 of 136; these inputs are shorter than one block.
  static byte[] shake(int rate, byte[] content, int size) {
    byte[] block = Arrays.copyOf(content, 200);
    block[content.length] ^= 0x1f;
    block[rate - 1] ^= (byte) 0x80;
    long[] a = new long[25];
    ByteBuffer.wrap(block).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(a);
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    while (out.size() < size) {
      permute(a);
      ByteBuffer squeezed = ByteBuffer.allocate(200).order(ByteOrder.LITTLE_ENDIAN);
      squeezed.asLongBuffer().put(a);
      out.write(squeezed.array(), 0, rate);
    }
    return Arrays.copyOf(out.toByteArray(), size);
  }

  static void permute(long[] a) {
    for (int round = 0, lfsr = 1; round < 24; round++) {
      long[] c = new long[5], row = new long[5];
      for (int i = 0; i < 25; i++) c[i % 5] ^= a[i];
      for (int i = 0; i < 25; i++) a[i] ^= c[(i + 4) % 5] ^ Long.rotateLeft(c[(i + 1) % 5], 1);
      long moved = a[1];
      for (int t = 0, x = 1, y = 0; t < 24; t++) {
        int next = (2 * x + 3 * y) % 5;
        x = y;
        y = next;
        long kept = a[x + 5 * y];
        a[x + 5 * y] = Long.rotateLeft(moved, (t + 1) * (t + 2) / 2);
        moved = kept;
      }
      for (int y = 0; y < 25; y += 5) {
        System.arraycopy(a, y, row, 0, 5);
        for (int x = 0; x < 5; x++) a[y + x] = row[x] ^ ~row[(x + 1) % 5] & row[(x + 2) % 5];
      }
      for (int j = 0; j < 7; j++) {
        if ((lfsr & 1) == 1) a[0] ^= 1L << (1 << j) - 1;
        lfsr = lfsr << 1 ^ (lfsr >> 7) * 0x171;
      }
    }
  }

  static byte[] extract(byte[] suite, byte[] salt, String name, byte[] content) throws Exception {
    return hmac(salt, join("HPKE-v1", suite, name, content));
  }

  static byte[] expand(byte[] suite, byte[] secret, String name, byte[] info, int size) throws Exception {
    return Arrays.copyOf(hmac(secret, join(u(2, size), "HPKE-v1", suite, name, info, u(1, 1))), size);
  }

  static byte[] x25519(byte[] mine, byte[] other) throws Exception {
    KeyFactory keys = KeyFactory.getInstance("X25519");
    byte[] reversed = new byte[32];
    for (int i = 0; i < 32; i++) reversed[i] = other[31 - i];
    reversed[0] &= 127;
    KeyAgreement agreement = KeyAgreement.getInstance("X25519");
    agreement.init(keys.generatePrivate(new XECPrivateKeySpec(NamedParameterSpec.X25519, mine)));
    agreement.doPhase(keys.generatePublic(new XECPublicKeySpec(NamedParameterSpec.X25519, new BigInteger(1, reversed))), true);
    return agreement.generateSecret();
  }

  static boolean verify(byte[] identity, byte[] statement, byte[] signature) throws Exception {
    byte[] form = join(unhex("302a300506032b6570032100"), identity);
    Signature verifier = Signature.getInstance("Ed25519");
    verifier.initVerify(KeyFactory.getInstance("Ed25519").generatePublic(new X509EncodedKeySpec(form)));
    verifier.update(statement);
    return verifier.verify(signature);
  }

  static byte[] gcm(byte[] key, byte[] nonce, byte[] content, byte[] associated) throws Exception {
    Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
    cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(key, "AES"), new GCMParameterSpec(128, nonce));
    cipher.updateAAD(associated);
    return cipher.doFinal(content);
  }

  static byte[] hmac(byte[] key, byte[] content) throws Exception {
    Mac mac = Mac.getInstance("HmacSHA256");
    mac.init(new SecretKeySpec(key.length == 0 ? new byte[32] : key, "HmacSHA256"));
    return mac.doFinal(content);
  }

  static byte[] hkdf(byte[] secret, byte[] salt, String info) throws Exception {
    return hmac(hmac(salt, secret), join(info, u(1, 1)));
  }

  static byte[] kdf(byte[] secret, String purpose, byte[] salt) throws Exception {
    return hkdf(secret, salt, "privstats/upload/" + purpose);
  }

  static byte[] fresh() { byte[] out = new byte[32]; new SecureRandom().nextBytes(out); return out; }

  static byte[] step(String name, byte[] value) { STEPS.put(name, hex(value)); return value; }

  static void known(Map<String, Object> table, String names) {
    for (String name : table.keySet()) require(List.of(names.split(" ")).contains(name), "the plan has " + name + ", which this client does not know");
  }

  static byte[] label(String purpose) { return join("privstats/upload/1/" + purpose, u(1, 0)); }

  static byte[] hash(Object... parts) throws Exception { return MessageDigest.getInstance("SHA-256").digest(join(parts)); }

  static byte[] join(Object... parts) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    for (Object part : parts) out.writeBytes(part instanceof String text ? text.getBytes(java.nio.charset.StandardCharsets.UTF_8) : (byte[]) part);
    return out.toByteArray();
  }

  static byte[] u(int size, long value) { return Arrays.copyOfRange(ByteBuffer.allocate(8).putLong(value).array(), 8 - size, 8); }

  static byte[] pack(Object value) {
    if (value instanceof Long n) return n < 128 ? u(1, n) : n < 256 ? join(u(1, 0xcc), u(1, n)) : n < 65536 ? join(u(1, 0xcd), u(2, n)) : join(u(1, 0xce), u(4, n));
    if (value instanceof String text) return join(u(1, 0xa0 | text.length()), text);
    if (value instanceof byte[] bin) return join(bin.length < 256 ? join(u(1, 0xc4), u(1, bin.length)) : join(u(1, 0xc5), u(2, bin.length)), bin);
    byte[] out = u(1, 0x90 | list(value).size());
    for (Object each : list(value)) out = join(out, pack(each));
    return out;
  }

  static String hex(byte[] bytes) { return HexFormat.of().formatHex(bytes); }
  static byte[] unhex(String text) { return HexFormat.of().parseHex(text); }

  static String base32(byte[] bytes) {
    StringBuilder bits = new StringBuilder(), out = new StringBuilder();
    for (byte each : bytes) bits.append(String.format("%8s", Integer.toBinaryString(each & 255)).replace(' ', '0'));
    while (bits.length() % 5 > 0) bits.append('0');
    for (int i = 0; i < bits.length(); i += 5) out.append("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".charAt(Integer.parseInt(bits.substring(i, i + 5), 2)));
    return out.toString();
  }

  static byte[] unbase32(String letters) {
    BigInteger value = BigInteger.ZERO;
    for (char letter : letters.toCharArray()) value = value.shiftLeft(5).or(BigInteger.valueOf("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(letter)));
    return unhex(String.format("%032x", value.shiftRight(2)));
  }

  static Object json(String text) { tokens = TOKEN.matcher(text); return value(next()); }
  static String next() { require(tokens.find(), "no JSON"); return tokens.group(1); }

  static Object value(String token) {
    if (token.equals("{")) {
      Map<String, Object> out = new HashMap<>();
      for (String name = next(); !name.equals("}"); name = next()) if (!name.equals(",")) { next(); out.put((String) value(name), value(next())); }
      return out;
    }
    if (token.equals("[")) {
      List<Object> out = new ArrayList<>();
      for (String each = next(); !each.equals("]"); each = next()) if (!each.equals(",")) out.add(value(each));
      return out;
    }
    if (token.startsWith("\""))
      return ESCAPE.matcher(token.substring(1, token.length() - 1)).replaceAll(found -> Matcher.quoteReplacement(found.group(1) != null
          ? "" + (char) Integer.parseInt(found.group(1), 16) : "" + "\"\\/\b\f\n\r\t".charAt("\"\\/bfnrt".indexOf(found.group(2)))));
    if (token.equals("true") || token.equals("false")) return token.equals("true");
    if (token.matches("-?\\d+")) return Long.valueOf(token);
    return Double.valueOf(token);
  }

  @SuppressWarnings("unchecked") static Map<String, Object> map(Object value) { return (Map<String, Object>) value; }
  @SuppressWarnings("unchecked") static List<Object> list(Object value) { return (List<Object>) value; }
  static void require(boolean held, String why) { if (!held) throw new IllegalArgumentException(why); }
}
