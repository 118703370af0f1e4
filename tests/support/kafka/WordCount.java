import java.io.FileReader;
import java.io.Reader;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Materialized;

/** Counts words of "lines" into "counts", through a repartition topic and a store: BOOTSTRAP FOLDER GUARANTEE [PROTOCOL [PROPERTIES]]. */
public final class WordCount {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        if (arguments.length > 4) {
            try (Reader client = new FileReader(arguments[4])) {
                settings.load(client);
            }
        }
        settings.put("application.id", "words");
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("state.dir", arguments[1]);
        settings.put("processing.guarantee", arguments[2]);
        settings.put("group.protocol", arguments.length > 3 ? arguments[3] : "streams");
        settings.put("auto.offset.reset", "earliest");
        settings.put("commit.interval.ms", "200");
        settings.put("num.stream.threads", "2");
        settings.put("application.server", "localhost:7070");
        settings.put("default.key.serde", Serdes.String().getClass());
        settings.put("default.value.serde", Serdes.String().getClass());
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("lines").flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word).count(Materialized.as("store")).toStream().mapValues(count -> count.toString())
            .to("counts");
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> System.out.println(now));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> streams.close(Duration.ofSeconds(20))));
        streams.start();
        Thread.sleep(Long.MAX_VALUE);
    }
}
