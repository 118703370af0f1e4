import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.PartitionAssignorException;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.modern.Assignment;
import org.apache.kafka.coordinator.group.modern.GroupSpecImpl;
import org.apache.kafka.coordinator.group.modern.MemberSubscriptionAndAssignmentImpl;

/** Assignors of clients and of the group coordinator, and the measures by which answers of sticky ones are compared. */
final class Assignors {
    /** What a member says it owns, and in which generation. */
    private record Claim(List<TopicPartition> partitions, int generation) { }

    /** One call a case: range and round robin. */
    static Ask.Question once(Supplier<ConsumerPartitionAssignor> assignor) {
        return given -> {
            ObjectNode answer = Ask.inputs(given, "id", "tags", "topics", "racks", "members");
            return answer.set("assignment", shown(given, assigned(assignor.get(), given)));
        };
    }

    /** Sequences of calls: every round is complete in itself, so each is a new assignor. */
    static Ask.Question rounds(Supplier<ConsumerPartitionAssignor> assignor, boolean byUserData) {
        return given -> eachRound(given, round -> {
            ObjectNode answer = Ask.inputs(round, "event", "topics", "racks", "members");
            try {
                Map<String, List<TopicPartition>> assignment = assigned(assignor.get(), round);
                answer.set("assignment", shown(round, assignment));
                List<TopicPartition> all = assignment.values().stream().flatMap(List::stream).toList();
                if (new HashSet<>(all).size() < all.size())
                    return answer.put("defect", "two owners");
                return measured(answer, round, assignment, claims(round, byUserData), true);
            } catch (IllegalStateException defect) {
                return answer.set("error", Ask.error(defect).put("text", defect.getMessage()));
            }
        });
    }

    private static ObjectNode eachRound(ObjectNode given, Ask.Question question) throws Exception {
        ObjectNode answer = Ask.inputs(given, "id", "tags");
        ArrayNode rounds = answer.putArray("rounds");
        for (JsonNode round : given.get("rounds"))
            rounds.add(question.answer((ObjectNode) round));
        return answer;
    }

    private static Map<String, List<TopicPartition>> assigned(ConsumerPartitionAssignor assignor, JsonNode round) {
        Map<String, Subscription> members = new HashMap<>();
        for (JsonNode member : round.get("members")) {
            int generation = member.path("generation").asInt(-1);
            Optional<String> rack = Optional.ofNullable(member.has("rack") ? member.get("rack").asText() : null);
            Subscription subscription = new Subscription(texts(member.get("topics")), Clients.bytes(member.get("user_data")),
                Clients.partitions(member.get("owned")), generation, rack);
            subscription.setGroupInstanceId(
                Optional.ofNullable(member.has("instance_id") ? member.get("instance_id").asText() : null));
            members.put(member.get("id").asText(), subscription);
        }
        Map<String, List<TopicPartition>> assignment = new HashMap<>();
        assignor.assign(cluster(round), new GroupSubscription(members)).groupAssignment()
            .forEach((member, assigned) -> assignment.put(member, assigned.partitions()));
        return assignment;
    }

    /** A broker for each rack, and one without a rack. */
    private static Cluster cluster(JsonNode round) {
        Map<String, Node> brokers = new LinkedHashMap<>();
        List<PartitionInfo> partitions = new ArrayList<>();
        round.get("topics").properties().forEach(topic -> {
            for (int number = 0; number < topic.getValue().asInt(); number++) {
                List<Node> replicas = new ArrayList<>();
                JsonNode racks = round.path("racks").path(topic.getKey()).path(number);
                for (JsonNode rack : racks.isMissingNode() ? Ask.JSON.createArrayNode().addNull() : racks)
                    replicas.add(brokers.computeIfAbsent(rack.isNull() ? null : rack.asText(),
                        name -> new Node(brokers.size(), "broker", 9092, name)));
                Node[] nodes = replicas.toArray(Node[]::new);
                partitions.add(new PartitionInfo(topic.getKey(), number, nodes[0], nodes, nodes));
            }
        });
        return new Cluster("cluster", brokers.values(), partitions, Set.of(), Set.of());
    }

    private static List<String> texts(JsonNode array) {
        List<String> texts = new ArrayList<>();
        array.forEach(text -> texts.add(text.asText()));
        return texts;
    }

    private static ObjectNode shown(JsonNode round, Map<String, List<TopicPartition>> assignment) {
        ObjectNode shown = Ask.object();
        for (JsonNode member : round.get("members"))
            shown.set(member.get("id").asText(), Clients.byTopic(assignment.getOrDefault(member.get("id").asText(), List.of())));
        return shown;
    }

    /** The assignors of KIP-848, whose partitions come in sets and are shown sorted. */
    static Ask.Question server(Supplier<PartitionAssignor> assignor, boolean measured) {
        return given -> eachRound(given, round -> answered(assignor.get(), round, measured));
    }

    private static ObjectNode answered(PartitionAssignor assignor, ObjectNode round, boolean measured) {
        ObjectNode answer = Ask.inputs(round, "event", "subscription_type", "topics", "topic_ids", "members");
        try {
            Map<String, List<TopicPartition>> assignment = assigned(assignor, round);
            answer.set("assignment", shown(round, assignment));
            measured(answer, round, assignment, previous(round), false);
            return measured ? answer : answer.without("measures");
        } catch (PartitionAssignorException refusal) {
            String text = "a member subscribes to a topic that does not exist"; // Kafka's own text holds its id
            return answer.set("error", Ask.error(refusal).put("text", text));
        }
    }

    private static Map<String, List<TopicPartition>> assigned(PartitionAssignor assignor, JsonNode round) {
        Map<String, Uuid> ids = new LinkedHashMap<>();
        Map<Uuid, String> names = new HashMap<>();
        round.get("topic_ids").properties().forEach(topic -> {
            ids.put(topic.getKey(), Uuid.fromString(topic.getValue().asText()));
            names.put(ids.get(topic.getKey()), topic.getKey());
        });
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (JsonNode member : round.get("members")) {
            String name = member.get("id").asText();
            Map<Uuid, Set<Integer>> held = new HashMap<>();
            for (TopicPartition partition : Clients.partitions(member.get("previous"))) {
                Uuid topic = id(ids, partition.topic());
                held.computeIfAbsent(topic, key -> new LinkedHashSet<>()).add(partition.partition());
                owners.computeIfAbsent(topic, key -> new HashMap<>()).put(partition.partition(), name);
            }
            Set<Uuid> topics = new HashSet<>();
            texts(member.get("topics")).forEach(topic -> topics.add(id(ids, topic)));
            Optional<String> instance = Optional.ofNullable(member.has("instance_id") ? member.get("instance_id").asText() : null);
            members.put(name, new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), instance, topics, new Assignment(held)));
        }
        SubscriptionType type = SubscriptionType.valueOf(round.get("subscription_type").asText().toUpperCase());
        Map<String, List<TopicPartition>> assignment = new HashMap<>();
        assignor.assign(new GroupSpecImpl(members, type, owners), describer(round, names)).members().forEach((name, given) -> {
            List<TopicPartition> partitions = new ArrayList<>();
            Map<String, Set<Integer>> sorted = new java.util.TreeMap<>();
            given.partitions().forEach((topic, numbers) -> sorted.put(names.get(topic), new TreeSet<>(numbers)));
            sorted.forEach((topic, numbers) -> numbers.forEach(number -> partitions.add(new TopicPartition(topic, number))));
            assignment.put(name, partitions);
        });
        return assignment;
    }

    private static Uuid id(Map<String, Uuid> ids, String topic) {
        return ids.getOrDefault(topic, new Uuid(1, topic.hashCode()));
    }

    private static SubscribedTopicDescriber describer(JsonNode round, Map<Uuid, String> names) {
        return new SubscribedTopicDescriber() {
            @Override
            public int numPartitions(Uuid topic) {
                return round.get("topics").path(names.getOrDefault(topic, "")).asInt(-1);
            }

            @Override
            public Set<String> racksForPartition(Uuid topic, int partition) {
                return Set.of();
            }
        };
    }

    private static Map<String, Claim> previous(JsonNode round) {
        Map<String, Claim> claims = new LinkedHashMap<>();
        for (JsonNode member : round.get("members"))
            claims.put(member.get("id").asText(), new Claim(existing(round, Clients.partitions(member.get("previous"))), 0));
        return claims;
    }

    /** Sticky reads claims from the user data; cooperative sticky from the subscription, the generation from either. */
    private static Map<String, Claim> claims(JsonNode round, boolean byUserData) {
        Map<String, Claim> claims = new LinkedHashMap<>();
        for (JsonNode member : round.get("members")) {
            ByteBuffer data = Clients.bytes(member.get("user_data"));
            Claim claim;
            if (byUserData)
                claim = data == null ? new Claim(List.of(), -1) : userData(data);
            else {
                int sent = data == null || data.remaining() < 4 ? -1 : data.getInt(0);
                claim = new Claim(Clients.partitions(member.get("owned")), member.path("generation").asInt(sent));
            }
            claims.put(member.get("id").asText(), new Claim(existing(round, claim.partitions()), claim.generation()));
        }
        return claims;
    }

    private static Claim userData(ByteBuffer data) {
        List<TopicPartition> partitions = new ArrayList<>();
        try {
            for (int topics = data.getInt(); topics > 0; topics--) {
                byte[] name = new byte[data.getShort()];
                data.get(name);
                for (int count = data.getInt(); count > 0; count--)
                    partitions.add(new TopicPartition(new String(name, java.nio.charset.StandardCharsets.UTF_8), data.getInt()));
            }
        } catch (BufferUnderflowException | NegativeArraySizeException unreadable) {
            return new Claim(List.of(), -1);
        }
        return new Claim(partitions, data.remaining() >= 4 ? data.getInt() : -1);
    }

    private static List<TopicPartition> existing(JsonNode round, List<TopicPartition> partitions) {
        return partitions.stream().filter(one ->
            one.partition() >= 0 && one.partition() < round.get("topics").path(one.topic()).asInt(0)).distinct().toList();
    }

    private static ObjectNode measured(ObjectNode answer, JsonNode round, Map<String, List<TopicPartition>> assignment,
            Map<String, Claim> claims, boolean cooperative) {
        Map<String, Set<String>> topics = new LinkedHashMap<>();
        for (JsonNode member : round.get("members"))
            topics.put(member.get("id").asText(), new HashSet<>(texts(member.get("topics"))));
        Map<TopicPartition, String> old = oldOwners(claims, topics);
        Map<TopicPartition, String> owner = new HashMap<>();
        Map<String, Set<String>> held = new HashMap<>();
        ObjectNode counts = answer.putObject("counts");
        int most = 0;
        int least = Integer.MAX_VALUE;
        for (String member : topics.keySet()) {
            List<TopicPartition> given = assignment.getOrDefault(member, List.of());
            existing(round, given).forEach(partition -> owner.put(partition, member));
            held.put(member, new HashSet<>(given.stream().map(TopicPartition::topic).toList()));
            counts.put(member, given.size());
            most = Math.max(most, given.size());
            least = Math.min(least, given.size());
        }
        Set<String> wanted = new HashSet<>();
        topics.values().forEach(wanted::addAll);
        int everything = 0;
        for (String topic : wanted)
            everything += round.get("topics").path(topic).asInt(0);
        int kept = (int) old.entrySet().stream().filter(one -> one.getValue().equals(owner.get(one.getKey()))).count();
        int improvable = 0;
        for (String a : topics.keySet())
            for (String b : topics.keySet())
                if (counts.get(a).asInt() >= counts.get(b).asInt() + 2 && held.get(a).stream().anyMatch(topics.get(b)::contains))
                    improvable++;
        ObjectNode measures = answer.putObject("measures").put("kept", kept).put("moved", old.size() - kept);
        measures.put("fresh", (int) owner.keySet().stream().filter(one -> !old.containsKey(one)).count());
        if (cooperative)
            measures.put("unassigned", everything - owner.size());
        measures.put("spread", most - least).put("improvable", improvable);
        return answer;
    }

    /** The one member that claims a partition in the highest generation claimed, if it still subscribes to the topic. */
    private static Map<TopicPartition, String> oldOwners(Map<String, Claim> claims, Map<String, Set<String>> topics) {
        Map<TopicPartition, Integer> newest = new HashMap<>();
        claims.values().forEach(claim ->
            claim.partitions().forEach(one -> newest.merge(one, claim.generation(), Math::max)));
        Map<TopicPartition, List<String>> holders = new HashMap<>();
        claims.forEach((member, claim) -> claim.partitions().forEach(one -> {
            if (newest.get(one) == claim.generation())
                holders.computeIfAbsent(one, key -> new ArrayList<>()).add(member);
        }));
        Map<TopicPartition, String> old = new HashMap<>();
        holders.forEach((partition, members) -> {
            if (members.size() == 1 && topics.get(members.get(0)).contains(partition.topic()))
                old.put(partition, members.get(0));
        });
        return old;
    }
}
