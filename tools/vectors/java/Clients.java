import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.IntUnaryOperator;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Utils;

/** What clients compute by themselves: the payloads of protocol type "consumer", and the hashes that pick partitions. */
final class Clients {
    private static final int[] COUNTS = {1, 2, 3, 5, 7, 10, 12, 16, 50, 100, 200, 1000, 65536};

    static ObjectNode coordinatorHash(ObjectNode given) {
        String group = given.get("group_id").asText();
        int hash = group.hashCode();
        ObjectNode answer = Ask.inputs(given, "group_id", "utf16");
        answer.put("hash", hash).put("abs", Utils.abs(hash));
        return partitions(answer, count -> Utils.abs(hash) % count);
    }

    static ObjectNode murmur2(ObjectNode given) {
        byte[] key = Ask.HEX.parseHex(given.get("key").asText());
        int hash = Utils.murmur2(key);
        ObjectNode answer = Ask.inputs(given, "key").put("murmur2", hash).put("positive", Utils.toPositive(hash));
        return partitions(answer,
            count -> org.apache.kafka.clients.producer.internals.BuiltInPartitioner.partitionForKey(key, count));
    }

    private static ObjectNode partitions(ObjectNode answer, IntUnaryOperator partition) {
        ObjectNode partitions = answer.putObject("partitions");
        for (int count : COUNTS)
            partitions.put(Integer.toString(count), partition.applyAsInt(count));
        return answer;
    }

    static ObjectNode consumerProtocol(ObjectNode given) {
        boolean subscription = given.get("kind").asText().equals("subscription");
        ObjectNode answer = Ask.inputs(given, "kind", "version", "case", "encoded", "hex");
        short version = (short) given.get("version").asInt();
        if (given.has("encoded")) {
            JsonNode plain = given.get("encoded");
            answer.put("hex", Messages.hex(subscription
                ? ConsumerProtocol.serializeSubscription(subscription(plain), version)
                : ConsumerProtocol.serializeAssignment(assignment(plain), version)));
        }
        ByteBuffer buffer = ByteBuffer.wrap(Ask.HEX.parseHex(answer.get("hex").asText()));
        try {
            return answer.set("decoded", subscription
                ? decoded(ConsumerProtocol.deserializeSubscription(buffer))
                : decoded(ConsumerProtocol.deserializeAssignment(buffer)));
        } catch (RuntimeException refusal) {
            return answer.set("error", Ask.error(refusal));
        }
    }

    private static Subscription subscription(JsonNode plain) {
        List<String> topics = new ArrayList<>();
        plain.get("topics").forEach(topic -> topics.add(topic.asText()));
        int generation = plain.get("generation").isNull() ? -1 : plain.get("generation").asInt();
        Optional<String> rack = Optional.ofNullable(plain.get("rack").isNull() ? null : plain.get("rack").asText());
        return new Subscription(topics, bytes(plain.get("user_data")), partitions(plain.get("owned")), generation, rack);
    }

    private static Assignment assignment(JsonNode plain) {
        return new Assignment(partitions(plain.get("partitions")), bytes(plain.get("user_data")));
    }

    static ByteBuffer bytes(JsonNode hex) {
        return hex == null || hex.isNull() ? null : ByteBuffer.wrap(Ask.HEX.parseHex(hex.asText()));
    }

    static List<TopicPartition> partitions(JsonNode byTopic) {
        List<TopicPartition> partitions = new ArrayList<>();
        if (byTopic != null)
            byTopic.properties().forEach(topic ->
                topic.getValue().forEach(number -> partitions.add(new TopicPartition(topic.getKey(), number.asInt()))));
        return partitions;
    }

    private static ObjectNode decoded(Subscription read) {
        ObjectNode node = Ask.object();
        node.set("topics", Ask.JSON.valueToTree(read.topics()));
        node.put("user_data", read.userData() == null ? null : Messages.hex(read.userData()));
        node.set("owned", byTopic(read.ownedPartitions()));
        node.set("generation", Ask.JSON.valueToTree(read.generationId().orElse(null)));
        return node.put("rack", read.rackId().orElse(null));
    }

    private static ObjectNode decoded(Assignment read) {
        ObjectNode node = Ask.object();
        node.set("partitions", byTopic(read.partitions()));
        return node.put("user_data", read.userData() == null ? null : Messages.hex(read.userData()));
    }

    /** {topic: [partitions]}, topics and partitions in the order in which they come. */
    static ObjectNode byTopic(Iterable<TopicPartition> partitions) {
        ObjectNode node = Ask.object();
        for (TopicPartition partition : partitions)
            node.withArray("/" + partition.topic().replace("~", "~0").replace("/", "~1")).add(partition.partition());
        return node;
    }
}
