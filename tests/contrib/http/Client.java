// A device's client written from docs/wire.md alone: java Client.java LEADER RUN STUDY LINK NAME=VALUE... ("-" is missing).
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
    known(map(plan.get("aggregation")), "graph min_count protocol panel");
    known(map(plan.get("privacy")), "model unit adjacency epsilon delta shares max_records_per_client");
    known(schema, "task transform variables tables");
    for (String name : List.of("clients", "min_survivors", "colluders")) require(manifest.get(name).equals(cohort.get(name)), "another cohort");
    List<Object> panel = list(map(plan.get("aggregation")).get("panel")), offers = list(manifest.get("offers")), segments = list(manifest.get("segments"));
    int helpers = panel.size() - 1;
    List<Object> numbers = new ArrayList<>(List.of(manifest.get("clients"), manifest.get("min_survivors"), manifest.get("colluders"), (long) helpers, helpers - 1L));
    List<Object> stated = new ArrayList<>(List.of("privstats/upload/1 X25519 Ed25519 HKDF-SHA256 AES-256-GCM".getBytes(), "split", numbers, segments, digest));
    if ((boolean) manifest.get("noisy_helpers")) stated.add("noisy helpers");
    byte[] parameters = step("parameters", hash("privstats/upload/parameters", pack(stated))), all = new byte[0];
    List<byte[]> boxKeys = new ArrayList<>();
    for (int place = 0; place <= helpers; place++) {
      byte[] offer = unhex((String) offers.get(place)), identity = unhex((String) panel.get(place));
      byte[] boxKey = Arrays.copyOfRange(offer, 33, 65), until = Arrays.copyOfRange(offer, 65, 73);
      require(offer[0] == place && Arrays.equals(identity, Arrays.copyOfRange(offer, 1, 33)), "another panel");
      require(verify(identity, join(label("offer-until"), parameters, roster, u(1, place), boxKey, until), Arrays.copyOfRange(offer, 73, 137)), "a bad offer");
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
    byte[] secret = step("secret", kdf(join(root, hedge), "secret/" + index, context)), boxes = new byte[0];
    List<byte[]> level = new ArrayList<>();
    for (int place = 1; place < boxKeys.size(); place++) {
      byte[] seed = step("seed " + place, kdf(secret, "seed/" + place, context));
      Cipher stream = Cipher.getInstance("AES/CTR/NoPadding");
      stream.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(step("stream " + place, kdf(seed, "stream/" + index, context)), "AES"), new IvParameterSpec(join(new byte[12], u(4, 2))));
      IntBuffer mask = ByteBuffer.wrap(stream.doFinal(new byte[4 * vector.length])).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer();
      for (int i = 0; i < vector.length; i++) vector[i] -= mask.get(i);
      byte[] box = box(secret, context, sender, place, boxKeys.get(place), seed);
      boxes = join(boxes, box);
      level.add(hash(label("box-hash"), u(1, place), box));
    }
    byte[] body = box(secret, context, sender, 0, boxKeys.get(0), step("packed", packed(vector, bits)));
    while (Integer.bitCount(level.size()) > 1) level.add(new byte[32]);
    while (level.size() > 1) {
      List<byte[]> above = new ArrayList<>();
      for (int i = 0; i < level.size(); i += 2) above.add(hash("privstats/secagg/2/node", u(1, 0), level.get(i), level.get(i + 1)));
      level = above;
    }
    Signature signer = Signature.getInstance("Ed25519");
    signer.initSign(key);
    signer.update(join(label("report"), context, sender, Arrays.copyOf(body, 32), level.get(0)));
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
    byte[] ephemeral = kdf(secret, "ephemeral/" + place, context), nine = new byte[32], none = new byte[0];
    nine[0] = 9;
    byte[] enc = x25519(ephemeral, nine), kem = join("KEM", u(2, 0x20)), suite = join("HPKE", u(2, 0x20), u(2, 1), u(2, 2));
    byte[] shared = expand(kem, extract(kem, none, "eae_prk", x25519(ephemeral, receiver)), "shared_secret", join(enc, receiver), 32);
    byte[] info = join(label("box"), context, sender, u(1, place));
    byte[] scheduled = join(u(1, 0), extract(suite, none, "psk_id_hash", none), extract(suite, none, "info_hash", info));
    byte[] inner = extract(suite, shared, "secret", none);
    return join(enc, gcm(expand(suite, inner, "key", scheduled, 32), expand(suite, inner, "base_nonce", scheduled, 12), content, none));
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
