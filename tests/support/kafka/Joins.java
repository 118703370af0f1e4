import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.Executors;
import java.util.stream.Collectors;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.*;

/** Joins, words and windows of orders, payments and visits into "results", asked over HTTP: BOOTSTRAP FOLDER GUARANTEE PORT. */
public final class Joins {
    private static KafkaStreams streams;
    private static HostInfo self;

    public static void main(String[] arguments) throws Exception {
        self = new HostInfo("127.0.0.1", Integer.parseInt(arguments[3]));
        Properties settings = new Properties();
        settings.put("application.id", "joins");
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("state.dir", arguments[1]);
        settings.put("processing.guarantee", arguments[2]);
        settings.put("group.protocol", "streams");
        settings.put("auto.offset.reset", "earliest");
        settings.put("commit.interval.ms", "200");
        settings.put("producer.transaction.timeout.ms", "4000");
        settings.put("num.stream.threads", "2");
        settings.put("application.server", self.host() + ":" + self.port());
        settings.put("default.key.serde", Serdes.String().getClass());
        settings.put("default.value.serde", Serdes.String().getClass());
        streams = new KafkaStreams(topology(), settings);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        HttpServer server = HttpServer.create(new InetSocketAddress(self.host(), self.port()), 0);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            byte[] answer;
            int status = 200;
            try {
                answer = answer(exchange.getRequestURI().getPath().split("/")).getBytes();
            } catch (Exception error) {
                answer = error.toString().getBytes();
                status = 503;
            }
            exchange.sendResponseHeaders(status, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
        streams.start();
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        KTable<String, String> customers = builder.table("customers", Materialized.as("customers-store"));
        GlobalKTable<String, String> products = builder.globalTable("products");
        KStream<String, String> orders = builder.stream("orders"); // order -> order customer product
        KStream<String, String> payments = builder.stream("payments"); // order -> method
        KStream<String, String> visits = builder.stream("visits", Consumed.with(Serdes.String(), Serdes.String())); // customer -> page

        tell("global", orders.join(products, (order, value) -> value.split(" ")[2], (order, product) -> product));
        JoinWindows near = JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(10), Duration.ofHours(1));
        tell("pair", orders.join(payments, (order, method) -> method, near));
        KTable<String, String> placed = orders.toTable(Materialized.as("orders-store"));
        tell("foreign", placed.join(customers, order -> order.split(" ")[1], (order, town) -> town).toStream());

        KStream<String, String> byCustomer =
            orders.selectKey((order, value) -> value.split(" ")[1]).repartition(Repartitioned.as("by-customer"));
        tell("table", byCustomer.join(customers, (order, town) -> order.split(" ")[0] + " " + town)
            .map((customer, value) -> KeyValue.pair(value.split(" ")[0], value.split(" ")[1])));
        tell("word", orders.flatMapValues(value -> List.of(value.split(" "))).groupBy((order, word) -> word)
            .count(Materialized.as("words")).toStream().mapValues(Object::toString));

        tell("window", visits.groupByKey().windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofSeconds(10)))
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("windows").withRetention(Duration.ofHours(3)))
            .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()))
            .toStream((window, count) -> window.key() + " " + window.window().start()).mapValues(Object::toString));
        tell("session", visits.groupByKey()
            .windowedBy(SessionWindows.ofInactivityGapAndGrace(Duration.ofSeconds(5), Duration.ofHours(1)))
            .count(Materialized.as("sessions"))
            .toStream((one, count) -> one.key() + " " + one.window().start() + " " + one.window().end())
            .mapValues(count -> count == null ? null : count.toString()));
        return builder.build();
    }

    private static void tell(String what, KStream<String, String> found) {
        found.map((key, value) -> KeyValue.pair(what + " " + key, value)).to("results");
    }

    /** /clients: the ports of all; /STORE/KEY: "value active standbys"; /STORE/KEY/here: what this instance has. */
    private static String answer(String[] path) throws Exception {
        if (path[1].equals("clients")) {
            return ports(streams.metadataForAllStreamsClients().stream().map(StreamsMetadata::hostInfo).toList());
        }
        if (path.length == 4) {
            return Long.toString(value(path[1], path[2]));
        }
        KeyQueryMetadata where = streams.queryMetadataForKey(path[1], path[2], new StringSerializer());
        String url = "http://" + where.activeHost().host() + ":" + where.activeHost().port() + "/" + path[1] + "/" + path[2];
        try (var value = URI.create(url + "/here").toURL().openStream()) {
            String found = new String(value.readAllBytes());
            return found + " " + where.activeHost().port() + " " + ports(where.standbyHosts());
        }
    }

    private static String ports(Collection<HostInfo> hosts) {
        return hosts.stream().map(host -> Integer.toString(host.port())).sorted().collect(Collectors.joining(","));
    }

    /** What the tasks here have for a key; windows and sessions are summed up. */
    private static long value(String store, String key) {
        Instant now = Instant.now();
        return switch (store) {
            case "words" -> open(store, QueryableStoreTypes.<String, Long>keyValueStore()).get(key);
            case "windows" -> sum(open(store, QueryableStoreTypes.<String, Long>windowStore())
                .fetch(key, now.minusSeconds(7_200), now.plusSeconds(7_200)));
            default -> sum(open(store, QueryableStoreTypes.<String, Long>sessionStore()).fetch(key));
        };
    }

    private static <T> T open(String store, QueryableStoreType<T> type) {
        return streams.store(StoreQueryParameters.fromNameAndType(store, type));
    }

    private static long sum(KeyValueIterator<?, Long> found) {
        try (found) {
            long sum = 0;
            while (found.hasNext()) {
                sum += found.next().value;
            }
            return sum;
        }
    }
}
