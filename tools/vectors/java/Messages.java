import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.protocol.Readable;
import org.apache.kafka.common.record.internal.BaseRecords;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecordSerde;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.coordinator.share.ShareCoordinatorRecordSerde;

/** Bytes and JSON of messages and of the records of both coordinators' logs, by Kafka's generated classes. */
final class Messages {
    private static final String GROUP = "org.apache.kafka.coordinator.group.generated.";
    private static final String SHARE = "org.apache.kafka.coordinator.share.generated.";
    private static final String TRANSACTION = "org.apache.kafka.coordinator.transaction.generated.";

    /** The cases read again, and new ones for each version of an API that has none; arguments are further APIs. */
    static List<String> messages(List<ObjectNode> cases, List<String> arguments) throws Exception {
        Set<String> wanted = new HashSet<>(arguments);
        Map<String, List<ObjectNode>> given = new HashMap<>();
        for (ObjectNode one : cases) {
            wanted.add(one.get("name").asText());
            given.computeIfAbsent(place(one), key -> new ArrayList<>()).add(one);
        }
        List<String> lines = new ArrayList<>();
        for (Layouts.Message message : Layouts.all()) {
            if (!wanted.contains(message.name()))
                continue;
            for (int version : message.versions()) {
                ObjectNode start = Ask.object().put("api", message.api()).put("name", message.name());
                start.put("kind", message.kind()).put("version", version);
                List<ObjectNode> found = given.get(place(start));
                for (ObjectNode one : found == null ? made(message, version, start) : found)
                    lines.add(Ask.text(message(message, one)));
            }
        }
        return lines;
    }

    private static String place(ObjectNode one) {
        return one.get("name").asText() + " " + one.get("kind").asText() + " " + one.get("version").asInt();
    }

    private static ObjectNode message(Layouts.Message kind, ObjectNode given) throws Exception {
        int version = given.get("version").asInt();
        Message read = read(kind.type(), Ask.HEX.parseHex(given.get("hex").asText()), version);
        ObjectNode answer = Ask.inputs(given, "api", "name", "kind", "version", "fill");
        if (given.get("fill").asText().equals("tagged"))
            answer.put("unknown_tags", unknownTags(read));
        answer.set("json", json(read, version, false));
        ArrayNode records = Ask.JSON.createArrayNode();
        gather(read, records);
        if (!records.isEmpty())
            answer.set("records", records);
        return answer.put("hex", Ask.HEX.formatHex(bytes(read, version)));
    }

    /** A new object, the empty one, three random ones and two with unknown tags; equal ones are left out. */
    private static List<ObjectNode> made(Layouts.Message kind, int version, ObjectNode start) throws Exception {
        List<ObjectNode> cases = new ArrayList<>();
        Set<String> seen = new HashSet<>();
        Message fresh = (Message) kind.type().getConstructor().newInstance();
        add(cases, seen, start, "defaults", Ask.HEX.formatHex(bytes(fresh, version)));
        add(cases, seen, start, "empty", filled(kind, version, new Layouts.Filler(null, false)));
        for (int i = 0; i < 5; i++) {
            boolean tagged = i >= 3;
            if (tagged && !Layouts.flexible(kind.schema(version)))
                break;
            Random random = new Random((place(start) + " " + i).hashCode());
            add(cases, seen, start, tagged ? "tagged" : "random", filled(kind, version, new Layouts.Filler(random, tagged)));
        }
        return cases;
    }

    private static void add(List<ObjectNode> cases, Set<String> seen, ObjectNode start, String fill, String hex) {
        if (seen.add(hex))
            cases.add(start.deepCopy().put("fill", fill).put("hex", hex));
    }

    /** The bytes as Kafka's class writes them: what is a default by chance is not written as a tagged field. */
    private static String filled(Layouts.Message kind, int version, Layouts.Filler filler) throws Exception {
        var struct = filler.struct(kind.schema(version));
        ByteBuffer buffer = ByteBuffer.allocate(kind.schema(version).sizeOf(struct));
        kind.schema(version).write(buffer, struct);
        return Ask.HEX.formatHex(bytes(read(kind.type(), buffer.array(), version), version));
    }

    static ObjectNode groupRecord(ObjectNode given) throws Exception {
        return coordinatorRecord(given, GROUP, new GroupCoordinatorRecordSerde());
    }

    static ObjectNode shareRecord(ObjectNode given) throws Exception {
        return coordinatorRecord(given, SHARE, new ShareCoordinatorRecordSerde());
    }

    private static ObjectNode coordinatorRecord(ObjectNode given, String classes, CoordinatorRecordSerde serde) throws Exception {
        if (given.has("case"))
            return loaded(given, serde);
        ObjectNode answer = Ask.inputs(given, "type", "key_id", "value_version", "fill");
        Message key = read(Class.forName(classes + given.get("key_class").asText()), after(given, "key_hex"), 0);
        Message value = given.has("value_class")
            ? read(Class.forName(classes + given.get("value_class").asText()), after(given, "value_hex"), version(given)) : null;
        if (given.get("fill").asText().equals("tagged"))
            answer.put("unknown_tags", unknownTags(value));
        answer.setAll(Ask.inputs(given, "key_class", "value_class"));
        return record(answer, given, key, value);
    }

    static ObjectNode transactionRecord(ObjectNode given) throws Exception {
        ObjectNode answer = Ask.inputs(given, "type", "key_id", "value_version", "fill");
        Message key = read(Class.forName(TRANSACTION + "TransactionLogKey"), after(given, "key_hex"), 0);
        Message value = read(Class.forName(TRANSACTION + "TransactionLogValue"), after(given, "value_hex"), version(given));
        if (given.get("fill").asText().equals("tagged"))
            answer.put("unknown_tags", unknownTags(value));
        return record(answer, given, key, value);
    }

    private static int version(ObjectNode given) {
        return given.get("value_version").asInt();
    }

    private static ObjectNode record(ObjectNode answer, ObjectNode given, Message key, Message value) throws Exception {
        answer.put("key_hex", prefixed(key, given.get("key_id").asInt(), 0));
        answer.set("key", json(key, 0, true));
        answer.put("value_hex", value == null ? null : prefixed(value, version(given), version(given)));
        return answer.set("value", value == null ? null : json(value, version(given), true));
    }

    /** What the loader of a coordinator makes of a record. */
    private static ObjectNode loaded(ObjectNode given, CoordinatorRecordSerde serde) {
        ObjectNode answer = Ask.inputs(given, "case", "key_hex", "value_hex");
        try {
            serde.deserialize(buffer(given.get("key_hex")), buffer(given.get("value_hex")));
            return answer.put("outcome", "accepted");
        } catch (RuntimeException refusal) {
            return answer.put("outcome", "refused").set("error", Ask.error(refusal));
        }
    }

    private static ByteBuffer buffer(JsonNode hex) {
        return hex.isNull() ? null : ByteBuffer.wrap(Ask.HEX.parseHex(hex.asText()));
    }

    private static byte[] after(ObjectNode given, String name) {
        return Ask.HEX.parseHex(given.get(name).asText().substring(4)); // two bytes say type or version
    }

    static String prefixed(Message message, int prefix, int version) {
        return String.format("%04x", prefix & 0xffff) + Ask.HEX.formatHex(bytes(message, version));
    }

    static byte[] bytes(Message message, int version) {
        ByteBuffer buffer = MessageUtil.toByteBufferAccessor(message, (short) version).buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        return bytes;
    }

    static Message read(Class<?> type, byte[] bytes, int version) throws Exception {
        Readable readable = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
        return (Message) type.getConstructor(Readable.class, short.class).newInstance(readable, (short) version);
    }

    static JsonNode json(Message message, int version, boolean records) throws Exception {
        Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
        try {
            return (JsonNode) converter.getMethod("write", message.getClass(), short.class, boolean.class)
                .invoke(null, message, (short) version, records);
        } catch (InvocationTargetException failure) {
            throw (Exception) failure.getCause();
        }
    }

    private static int unknownTags(Message message) throws Exception {
        int[] count = {0};
        walk(message, (owner, field) -> { }, found -> count[0] += found.unknownTaggedFields().size());
        return count[0];
    }

    private static void gather(Message message, ArrayNode records) throws Exception {
        walk(message, (owner, field) -> {
            if (BaseRecords.class.isAssignableFrom(field.getType())) {
                MemoryRecords bytes = (MemoryRecords) field.get(owner);
                records.add(bytes == null ? null : hex(bytes.buffer()));
            }
        }, found -> { });
    }

    static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return Ask.HEX.formatHex(bytes);
    }

    private interface FieldVisitor {
        void visit(Object owner, Field field) throws Exception;
    }

    private static void walk(Message message, FieldVisitor fields, java.util.function.Consumer<Message> messages)
            throws Exception {
        messages.accept(message);
        for (Field field : message.getClass().getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) || field.getName().equals("_unknownTaggedFields"))
                continue;
            field.setAccessible(true);
            fields.visit(message, field);
            Object value = field.get(message);
            if (value instanceof Message inner)
                walk(inner, fields, messages);
            else if (value instanceof Collection<?> elements)
                for (Object element : elements)
                    if (element instanceof Message inner)
                        walk(inner, fields, messages);
        }
    }
}
