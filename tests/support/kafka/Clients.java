import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;

/** Each of Kafka's Java clients once on topic args[1], of one partition; prints what each saw. */
public class Clients {
    static String bootstrap, topic;

    public static void main(String[] args) throws Exception {
        bootstrap = args[0];
        topic = args[1];
        try (Producer<String, String> plain = producer(Map.of("compression.type", "zstd"))) {
            for (int i = 0; i < 3; i++)
                plain.send(new ProducerRecord<>(topic, "plain" + i)).get();
        }
        copy();
        read("classic", Map.of("group.protocol", "classic", "partition.assignment.strategy", CooperativeStickyAssignor.class.getName()));
        read("consumer", Map.of("group.protocol", "consumer"));
        read("static", Map.of("group.protocol", "consumer", "group.instance.id", "i", "group.remote.assignor", "range"));
        share();
    }

    static Properties with(Map<String, String> more) {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        all.put("auto.offset.reset", "earliest");
        all.put("isolation.level", "read_committed");
        all.put("enable.auto.commit", "false");
        all.putAll(more);
        return all;
    }

    static Producer<String, String> producer(Map<String, String> more) {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        all.putAll(more);
        return new KafkaProducer<>(all, new StringSerializer(), new StringSerializer());
    }

    static Consumer<String, String> consumer(Map<String, String> more) {
        return new KafkaConsumer<>(with(more), new StringDeserializer(), new StringDeserializer());
    }

    /** One transaction that is aborted, and one with the offsets of a KIP-848 member. */
    static void copy() {
        try (Producer<String, String> producer = producer(Map.of("transactional.id", "copier"));
                Consumer<String, String> consumer = consumer(Map.of("group.id", "copier", "group.protocol", "consumer"))) {
            producer.initTransactions();
            consumer.subscribe(List.of(topic));
            List<String> values = poll(consumer, 3);
            for (boolean commits : new boolean[] {false, true}) {
                producer.beginTransaction();
                for (String value : values)
                    producer.send(new ProducerRecord<>(topic, (commits ? "copied " : "aborted ") + value));
                producer.flush(); // else what is aborted is never written
                producer.sendOffsetsToTransaction(
                    Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(3)), consumer.groupMetadata());
                if (commits)
                    producer.commitTransaction();
                else
                    producer.abortTransaction();
            }
            System.out.println("copier " + consumer.committed(Set.of(new TopicPartition(topic, 0))).values().iterator().next().offset());
        }
    }

    static List<String> poll(Consumer<String, String> consumer, int count) {
        List<String> values = new ArrayList<>();
        while (values.size() < count)
            consumer.poll(Duration.ofMillis(200)).forEach(record -> values.add(record.value()));
        return values;
    }

    static void read(String name, Map<String, String> more) {
        Map<String, String> all = new HashMap<>(more);
        all.put("group.id", name);
        try (Consumer<String, String> consumer = consumer(all)) {
            consumer.subscribe(List.of(topic));
            System.out.println(name + " " + String.join(",", poll(consumer, 6)));
            consumer.commitSync();
        }
    }

    /** Each record is accepted. */
    static void share() {
        Properties all = new Properties();
        all.put("bootstrap.servers", bootstrap);
        all.put("group.id", "shared");
        List<String> values = new ArrayList<>();
        try (ShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(all, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            while (values.size() < 6)
                consumer.poll(Duration.ofMillis(200)).forEach(record -> values.add(record.value()));
            consumer.commitSync();
        }
        System.out.println("shared " + String.join(",", values));
    }
}
