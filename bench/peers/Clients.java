import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Kafka's own client beside ours: `consume BOOTSTRAP TOPIC COUNT`, and `assign MEMBERS PARTITIONS TOPICS`. */
public class Clients {
    static final int WARM_UP_ROUNDS = 60, ROUNDS = 15;

    public static void main(String[] given) {
        if (given[0].equals("consume")) consume(given[1], given[2], Long.parseLong(given[3]));
        else assign(Integer.parseInt(given[1]), Integer.parseInt(given[2]), Integer.parseInt(given[3]));
    }

    static double cpuSeconds() {
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return system.getProcessCpuTime() / 1e9;
    }

    /** Prints records per second and per CPU-second of this process, after the compiler has seen as many records. */
    static void consume(String bootstrap, String topic, long count) {
        Map<String, Object> config = Map.of("bootstrap.servers", bootstrap, "max.poll.records", 10000);
        try (var consumer = new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            var partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            double began = 0, cpu = 0;
            for (int round = 0; round < 2; round++) {
                began = System.nanoTime() / 1e9;
                cpu = cpuSeconds();
                consumer.seekToBeginning(List.of(partition));
                long got = 0, total = 0;
                while (got < count)
                    for (var record : consumer.poll(Duration.ofSeconds(1))) {
                        total += record.value().length + record.key().length;
                        got++;
                    }
            }
            System.out.printf("%f %f%n", count / (System.nanoTime() / 1e9 - began), count / (cpuSeconds() - cpu));
        }
    }

    /** Prints milliseconds of this thread's CPU: sticky from nothing, sticky after one left, range. */
    static void assign(int members, int partitions, int topics) {
        var node = new Node(0, "localhost", 9092);
        var infos = new ArrayList<PartitionInfo>();
        var names = new ArrayList<String>();
        for (int topic = 0; topic < topics; topic++) {
            names.add("topic-" + topic);
            for (int p = 0; p < partitions / topics; p++)
                infos.add(new PartitionInfo("topic-" + topic, p, node, new Node[] {node}, new Node[] {node}));
        }
        var cluster = new Cluster("bench", List.of(node), infos, Collections.emptySet(), Collections.emptySet());
        var all = new TreeMap<String, Subscription>();
        for (int i = 0; i < members; i++) all.put(String.format("member-%04d", i), new Subscription(names));
        double[][] took = new double[3][ROUNDS];
        for (int round = -WARM_UP_ROUNDS; round < ROUNDS; round++) {
            var sticky = new StickyAssignor();
            long began = now();
            Map<String, Assignment> first = sticky.assign(cluster, new GroupSubscription(all)).groupAssignment();
            double fresh = now() - began;
            var left = new HashMap<String, Subscription>();
            for (var entry : first.entrySet())
                if (!entry.getKey().equals("member-0000")) {
                    var member = new StickyAssignor();
                    member.onAssignment(entry.getValue(), new ConsumerGroupMetadata("bench", 1, entry.getKey(), Optional.empty()));
                    ByteBuffer data = member.subscriptionUserData(Collections.emptySet());
                    left.put(entry.getKey(), new Subscription(names, data, entry.getValue().partitions()));
                }
            began = now();
            new StickyAssignor().assign(cluster, new GroupSubscription(left));
            double leaving = now() - began;
            began = now();
            new RangeAssignor().assign(cluster, new GroupSubscription(all));
            double range = now() - began;
            if (round >= 0) {
                took[0][round] = fresh;
                took[1][round] = leaving;
                took[2][round] = range;
            }
        }
        for (double[] values : took) {
            java.util.Arrays.sort(values);
            System.out.printf("%f ", values[ROUNDS / 2] / 1e6);
        }
        System.out.println();
    }

    static long now() {
        return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
    }
}
