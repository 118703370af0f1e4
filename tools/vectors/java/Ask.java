import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.coordinator.group.assignor.SimpleAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/**
 * Asks Apache Kafka's own classes: Ask CASES ANSWERS FILE,FILE... [ARGUMENT...], where the first two are folders.
 *
 * A file holds one JSON object a line. A case carries its inputs; whatever else stands in it is thrown away and asked
 * again, so the same cases put to another release show what that release answers.
 */
public final class Ask {
    static final JsonMapper JSON = JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();
    static final HexFormat HEX = HexFormat.of();

    /** Turns the cases of one file into the lines of that file. */
    interface Subject {
        List<String> lines(List<ObjectNode> cases, List<String> arguments) throws Exception;
    }

    /** Answers one case; a case does not know of the others. */
    interface Question {
        ObjectNode answer(ObjectNode given) throws Exception;
    }

    static final Map<String, Subject> SUBJECTS = Map.ofEntries(
        Map.entry("schema.json", Tables::schema),
        Map.entry("errors.json", Tables::errors),
        Map.entry("configs.json", Tables::configs),
        Map.entry("layouts.jsonl", Tables::layouts),
        Map.entry("messages.jsonl", Messages::messages),
        Map.entry("group-log.jsonl", each(Messages::groupRecord)),
        Map.entry("share-log.jsonl", each(Messages::shareRecord)),
        Map.entry("transaction-log.jsonl", each(Messages::transactionRecord)),
        Map.entry("consumer-protocol.jsonl", each(Clients::consumerProtocol)),
        Map.entry("coordinator-hash.jsonl", each(Clients::coordinatorHash)),
        Map.entry("murmur2.jsonl", each(Clients::murmur2)),
        Map.entry("assignors-range.jsonl", each(Assignors.once(RangeAssignor::new))),
        Map.entry("assignors-roundrobin.jsonl", each(Assignors.once(RoundRobinAssignor::new))),
        Map.entry("assignors-sticky.jsonl", each(Assignors.rounds(StickyAssignor::new, true))),
        Map.entry("assignors-cooperative-sticky.jsonl", each(Assignors.rounds(CooperativeStickyAssignor::new, false))),
        Map.entry("assignors-server-uniform.jsonl", each(Assignors.server(UniformAssignor::new, true))),
        Map.entry("assignors-server-range.jsonl",
            each(Assignors.server(org.apache.kafka.coordinator.group.assignor.RangeAssignor::new, true))),
        Map.entry("assignors-server-simple.jsonl", each(Assignors.server(SimpleAssignor::new, false))),
        Map.entry("streams.jsonl", each(Ask::ofStreams)),
        Map.entry("record-batches.jsonl", each(Batches::batches)),
        Map.entry("security.jsonl", each(Security::security)),
        Map.entry("acls.jsonl", each(Security::acls)),
        Map.entry("transaction-moves.jsonl", each(Transactions::move)),
        Map.entry("transaction-log-written.jsonl", each(Transactions::written)));

    /** Looked up by name, since a release before 4.4.0 lacks what that program asks, and it is left out there. */
    private static ObjectNode ofStreams(ObjectNode given) throws Exception {
        return (ObjectNode) Class.forName("Streams").getDeclaredMethod("answer", ObjectNode.class).invoke(null, given);
    }

    static Subject each(Question question) {
        return (cases, arguments) -> {
            List<String> lines = new ArrayList<>();
            for (ObjectNode given : cases)
                lines.add(text(question.answer(given)));
            return lines;
        };
    }

    static String text(Object node) throws Exception {
        return JSON.writeValueAsString(node);
    }

    static ObjectNode object() {
        return JSON.createObjectNode();
    }

    /** The fields of a case that are inputs, in their order; those it does not have are left out. */
    static ObjectNode inputs(ObjectNode given, String... names) {
        ObjectNode answer = object();
        for (String name : names)
            if (given.has(name))
                answer.set(name, given.get(name));
        return answer;
    }

    /** How a failure of Kafka is written down: the class alone, whose messages change from release to release. */
    static ObjectNode error(Throwable failure) {
        return object().put("class", failure.getClass().getName());
    }

    public static void main(String[] arguments) throws Exception {
        Path given = Path.of(arguments[0]);
        Path asked = Path.of(arguments[1]);
        for (String name : arguments[2].split(",")) {
            List<ObjectNode> cases = new ArrayList<>();
            for (String line : Files.readAllLines(given.resolve(name)))
                cases.add((ObjectNode) JSON.readTree(line));
            List<String> rest = List.of(arguments).subList(3, arguments.length);
            Files.write(asked.resolve(name), SUBJECTS.get(name).lines(cases, rest));
        }
        System.exit(0); // some of Kafka's classes leave threads behind
    }
}
