import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.serialization.*;

/** Prints the metrics of Kafka's own consumer and producer: client, group, name, names of the tags, description. */
public class MetricNames {
    public static void main(String[] args) throws Exception {
        Properties common = new Properties();
        common.put("bootstrap.servers", args[0]);
        Properties p = new Properties();
        p.putAll(common);
        p.put("client.id", "p");
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.send(new ProducerRecord<>(args[1], 0, null, new byte[10])).get();
            Properties c = new Properties();
            c.putAll(common);
            c.put("client.id", "c");
            c.put("group.id", "g-metrics");
            c.put("auto.offset.reset", "earliest");
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(c, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(args[1]));
                while (consumer.poll(Duration.ofMillis(200)).isEmpty()) { }
                consumer.poll(Duration.ofMillis(200));
                consumer.commitSync();
                print("consumer", consumer.metrics());
            }
            print("producer", producer.metrics());
        }
    }

    static void print(String client, Map<MetricName, ? extends Metric> metrics) {
        for (MetricName name : metrics.keySet())
            System.out.println(String.join("\t", client, name.group(), name.name(), String.join(",", new TreeSet<>(name.tags().keySet())), name.description()));
    }
}
