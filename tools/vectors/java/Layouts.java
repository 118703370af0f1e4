import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.File;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import java.util.jar.JarFile;
import java.util.regex.Pattern;
import java.util.zip.ZipEntry;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.RawTaggedField;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;

/** The schemas that Kafka's generated classes carry: printed as layouts, and filled with values to make new cases. */
final class Layouts {
    static final String MESSAGES = "org.apache.kafka.common.message.";
    private static final Pattern STORED = Pattern.compile(
        "org/apache/kafka/.*/(generated|metadata|message|log)/(?!\\w*(Request|Response|Header)Data)\\w+\\.class");

    /** A message with its generated class, such as FetchRequestData. */
    record Message(Integer api, String name, String kind, Class<?> type) {
        List<Integer> versions() throws Exception {
            int low = type.getField("LOWEST_SUPPORTED_VERSION").getShort(null);
            int high = type.getField("HIGHEST_SUPPORTED_VERSION").getShort(null);
            List<Integer> versions = new ArrayList<>();
            for (int version = low; version <= high; version++)
                versions.add(version);
            return versions;
        }

        Schema schema(int version) throws Exception {
            return ((Schema[]) type.getField("SCHEMAS").get(null))[version];
        }
    }

    /** Headers, then requests and responses in the order of their keys. */
    static List<Message> all() throws Exception {
        List<Message> messages = new ArrayList<>();
        for (String name : List.of("RequestHeader", "ResponseHeader"))
            messages.add(new Message(null, name, "header", Class.forName(MESSAGES + name + "Data")));
        for (ApiMessageType api : ApiMessageType.values()) {
            if (api.highestSupportedVersion(true) < 0)
                continue; // the number is reserved
            for (String kind : List.of("Request", "Response")) {
                Class<?> type = Class.forName(MESSAGES + api.name + kind + "Data");
                messages.add(new Message((int) api.apiKey(), api.name, kind.toLowerCase(), type));
            }
        }
        return messages;
    }

    /** All that is stored by such schemas: records of the coordinators and of the metadata log, indexes, payloads. */
    static List<Message> records() throws Exception {
        List<Message> records = new ArrayList<>();
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (!path.contains("kafka") || !path.endsWith(".jar"))
                continue;
            try (JarFile jar = new JarFile(path)) {
                for (String name : jar.stream().map(ZipEntry::getName).filter(STORED.asMatchPredicate()).sorted().toList()) {
                    Class<?> type = Class.forName(name.replace(".class", "").replace('/', '.'));
                    if (Arrays.stream(type.getFields()).anyMatch(field -> field.getName().equals("SCHEMAS")))
                        records.add(new Message(null, type.getSimpleName().replaceAll("Data$", ""), "record", type));
                }
            }
        }
        return records;
    }

    static ObjectNode row(Message message, int version) throws Exception {
        ObjectNode row = Ask.object().put("api", message.api()).put("name", message.name());
        row.put("kind", message.kind()).put("version", version).put("flexible", flexible(message.schema(version)));
        row.set("fields", fields(message.schema(version)));
        return row;
    }

    static boolean flexible(Schema schema) {
        for (BoundField field : schema.fields())
            if (field.def.type instanceof TaggedFields)
                return true;
        return false;
    }

    private static ArrayNode fields(Schema schema) {
        ArrayNode rows = Ask.JSON.createArrayNode();
        for (BoundField field : schema.fields()) {
            if (field.def.type instanceof TaggedFields tagged)
                new TreeMap<>(tagged.fields()).forEach((tag, def) -> rows.add(row(def, tag)));
            else
                rows.add(row(field.def, null));
        }
        return rows;
    }

    private static ObjectNode row(Field field, Integer tag) {
        Type type = field.type;
        boolean struct = type instanceof Schema;
        ObjectNode row = Ask.object().put("name", field.name);
        row.put("type", struct ? "STRUCT" : type.toString().replaceAll("\\(.*", ""));
        if (type.isArray() && type.isNullable())
            row.put("type", type instanceof org.apache.kafka.common.protocol.types.CompactArrayOf
                ? "COMPACT_NULLABLE_ARRAY" : "NULLABLE_ARRAY");
        if (tag != null)
            row.put("tag", tag);
        if (struct && type.isNullable())
            row.put("nullable", true);
        Type element = type.arrayElementType().orElse(type);
        if (element instanceof Schema inner)
            row.set("fields", fields(inner));
        else if (type.isArray())
            row.put("of", element.toString());
        return row;
    }

    /** Fills a schema: every nullable null and the rest zero or empty, or random values and unknown tagged fields. */
    static final class Filler {
        private final Random random;
        private final boolean tags;

        Filler(Random random, boolean tags) {
            this.random = random;
            this.tags = tags;
        }

        Struct struct(Schema schema) {
            Struct struct = new Struct(schema);
            for (BoundField field : schema.fields())
                struct.set(field, value(field.def));
            return struct;
        }

        private Object value(Field field) {
            if (field.type instanceof TaggedFields tagged)
                return tagged(tagged);
            if (field.name.equals("error_code") && random != null)
                return Errors.values()[random.nextInt(Errors.values().length)].code();
            return value(field.type);
        }

        private NavigableMap<Integer, Object> tagged(TaggedFields type) {
            NavigableMap<Integer, Object> values = new TreeMap<>();
            if (random == null)
                return values;
            for (Map.Entry<Integer, Field> entry : type.fields().entrySet())
                if (random.nextBoolean())
                    values.put(entry.getKey(), value(entry.getValue().type));
            for (int tag = 100; tags && tag < 102; tag++)
                if (random.nextInt(3) > 0)
                    values.put(tag + random.nextInt(200) * 2, new RawTaggedField(tag, bytes()));
            NavigableMap<Integer, Object> right = new TreeMap<>();
            values.forEach((tag, value) ->
                right.put(tag, value instanceof RawTaggedField raw ? new RawTaggedField(tag, raw.data()) : value));
            return right;
        }

        private Object value(Type type) {
            if (type.isNullable() && (random == null || random.nextInt(4) == 0))
                return null;
            if (type instanceof Schema schema)
                return struct(schema);
            if (type.isArray()) {
                Object[] elements = new Object[random == null ? 0 : random.nextInt(4)];
                for (int i = 0; i < elements.length; i++)
                    elements[i] = value(type.arrayElementType().get());
                return elements;
            }
            return scalar(type.toString().replaceAll("COMPACT_|NULLABLE_", ""));
        }

        private Object scalar(String type) {
            long number = random == null ? 0 : number();
            return switch (type) {
                case "BOOLEAN" -> random != null && random.nextBoolean();
                case "INT8" -> (byte) number;
                case "INT16" -> (short) number;
                case "UINT16" -> (int) number & 0xffff;
                case "INT32" -> (int) number;
                case "INT64" -> number;
                case "FLOAT64" -> random == null ? 0.0 : random.nextGaussian();
                case "UUID" -> random == null ? Uuid.ZERO_UUID : new Uuid(random.nextLong(), random.nextLong());
                case "STRING" -> random == null ? "" : string();
                case "BYTES" -> java.nio.ByteBuffer.wrap(random == null ? new byte[0] : bytes());
                case "RECORDS" -> records();
                default -> throw new IllegalArgumentException("a type no case was made for: " + type);
            };
        }

        private long number() {
            return switch (random.nextInt(4)) {
                case 0 -> random.nextInt(256);
                case 1 -> random.nextLong();
                case 2 -> random.nextBoolean() ? Long.MAX_VALUE : -1;
                default -> random.nextInt(1_000_000);
            };
        }

        private String string() {
            return List.of("", "a", "topic-" + random.nextInt(99), "\u00e9", "\u4e3b\u9898", "e\u0301", "x".repeat(130))
                .get(random.nextInt(7));
        }

        private byte[] bytes() {
            byte[] bytes = new byte[random.nextInt(12)];
            random.nextBytes(bytes);
            return bytes;
        }

        private MemoryRecords records() {
            if (random == null)
                return MemoryRecords.EMPTY;
            SimpleRecord record = new SimpleRecord(1_750_000_000_000L, bytes(), bytes());
            return MemoryRecords.withRecords(Compression.NONE, Collections.singletonList(record).toArray(SimpleRecord[]::new));
        }
    }
}
