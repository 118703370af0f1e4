import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.BiFunction;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.generated.StreamsGroupTopologyValue;
import org.apache.kafka.coordinator.group.streams.CurrentAssignmentBuilder;
import org.apache.kafka.coordinator.group.streams.MemberState;
import org.apache.kafka.coordinator.group.streams.StreamsGroupMember;
import org.apache.kafka.coordinator.group.streams.StreamsTopology;
import org.apache.kafka.coordinator.group.streams.TasksTuple;
import org.apache.kafka.coordinator.group.streams.TasksTupleWithEpochs;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;
import org.apache.kafka.coordinator.group.streams.topics.InternalTopicManager;
import org.slf4j.helpers.NOPLogger;

/** Streams groups of release 4.4.0: assign the tasks, fit a topology to topics, take one step of a reconciliation. */
final class Streams {
    static ObjectNode answer(ObjectNode given) {
        return switch (given.get("kind").asText()) {
            case "assign" -> assign(given);
            case "fit" -> fit(given);
            default -> reconcile(given);
        };
    }

    private static ObjectNode assign(ObjectNode given) {
        ObjectNode answer = Ask.inputs(given, "kind", "subtopologies", "standbys", "members");
        Map<String, MemberMetadataAndStateImpl> members = new HashMap<>();
        for (JsonNode member : given.get("members"))
            members.put(member.get("id").asText(), new MemberMetadataAndStateImpl(Optional.empty(), Optional.empty(),
                member.get("process").asText(), Map.of(), tasks(member.get("active")), tasks(member.get("standby")),
                Map.of(), offsets(member.get("offsets")), Map.of()));
        JsonNode subtopologies = given.get("subtopologies");
        TopologyDescriber describer = new TopologyDescriber() {
            public List<String> subtopologies() {
                return new ArrayList<>(new TreeSet<>(names(subtopologies)));
            }

            public int maxNumInputPartitions(String name) {
                return subtopologies.get(name).get("tasks").asInt();
            }

            public boolean isStateful(String name) {
                return subtopologies.get(name).get("stateful").asBoolean();
            }
        };
        AssignmentConfigsImpl configs = new AssignmentConfigsImpl(given.get("standbys").asInt(), List.of());
        ObjectNode assignment = answer.putObject("assignment");
        new TreeMap<>(new StickyTaskAssignor().assign(new GroupSpecImpl(members, configs), describer).members())
            .forEach((name, tasks) -> {
                ObjectNode shown = assignment.putObject(name);
                shown.set("active", shown(tasks.activeTasks()));
                shown.set("standby", shown(tasks.standbyTasks()));
            });
        return answer;
    }

    private static ObjectNode fit(ObjectNode given) {
        ObjectNode answer = Ask.inputs(given, "kind", "topics", "topology");
        Map<String, StreamsGroupTopologyValue.Subtopology> subtopologies = new HashMap<>();
        for (JsonNode sub : given.get("topology"))
            subtopologies.put(sub.get("id").asText(), subtopology(sub));
        try {
            ConfiguredTopology fit = InternalTopicManager.configureTopics(NOPLogger.NOP_LOGGER, "g", "m", 0,
                new StreamsTopology(1, subtopologies), image(given.get("topics")), Time.SYSTEM);
            fit.topicConfigurationException().ifPresent(amiss -> answer.put("status", amiss.status().code()));
            fit.topicConfigurationException().filter(amiss -> amiss.status().code() < 3)
                .ifPresent(amiss -> answer.put("text", amiss.getMessage()));
            fit.subtopologies().ifPresent(found -> {
                ObjectNode tasks = answer.putObject("tasks");
                found.forEach((name, sub) -> tasks.put(name, sub.numberOfTasks()));
            });
            ObjectNode missing = answer.putObject("missing");
            new TreeMap<>(fit.internalTopicsToBeCreated()).forEach((name, topic) -> missing.put(name, topic.numPartitions()));
        } catch (ApiException refusal) {
            answer.set("error", Ask.error(refusal).put("text", refusal.getMessage()));
        }
        return answer;
    }

    private static StreamsGroupTopologyValue.Subtopology subtopology(JsonNode sub) {
        List<StreamsGroupTopologyValue.CopartitionGroup> groups = new ArrayList<>();
        for (JsonNode group : sub.get("copartition"))
            groups.add(new StreamsGroupTopologyValue.CopartitionGroup().setSourceTopics(shorts(group.get("sources")))
                .setRepartitionSourceTopics(shorts(group.get("repartition_sources"))));
        return new StreamsGroupTopologyValue.Subtopology().setSubtopologyId(sub.get("id").asText())
            .setSourceTopics(texts(sub.get("sources"))).setRepartitionSinkTopics(texts(sub.get("sinks")))
            .setRepartitionSourceTopics(infos(sub.get("repartition_sources"))).setStateChangelogTopics(infos(sub.get("changelogs")))
            .setCopartitionGroups(groups);
    }

    private static List<StreamsGroupTopologyValue.TopicInfo> infos(JsonNode topics) {
        List<StreamsGroupTopologyValue.TopicInfo> infos = new ArrayList<>();
        topics.properties().forEach(topic -> infos.add(new StreamsGroupTopologyValue.TopicInfo().setName(topic.getKey())
            .setPartitions(topic.getValue().asInt()).setTopicConfigs(List.of())));
        return infos;
    }

    private static CoordinatorMetadataImage image(JsonNode topics) {
        return new CoordinatorMetadataImage() {
            public Set<Uuid> topicIds() {
                return Set.of();
            }

            public Set<String> topicNames() {
                return new HashSet<>(names(topics));
            }

            public Optional<TopicMetadata> topicMetadata(String name) {
                return Optional.ofNullable(topics.get(name)).map(count -> new TopicMetadata() {
                    public String name() {
                        return name;
                    }

                    public Uuid id() {
                        return new Uuid(1, name.hashCode());
                    }

                    public int partitionCount() {
                        return count.asInt();
                    }

                    public List<String> partitionRacks(int partition) {
                        return List.of();
                    }
                });
            }

            public Optional<TopicMetadata> topicMetadata(Uuid id) {
                return Optional.empty();
            }

            public CoordinatorMetadataDelta emptyDelta() {
                return CoordinatorMetadataDelta.EMPTY;
            }

            public long version() {
                return 1;
            }

            public boolean isEmpty() {
                return false;
            }
        };
    }

    private static ObjectNode reconcile(ObjectNode given) {
        ObjectNode answer = Ask.inputs(given, "kind", "state", "epoch", "previous_epoch", "process", "held", "revoking",
            "target_epoch", "target", "owned", "active", "standby", "warmup");
        StreamsGroupMember member = StreamsGroupMember.Builder.withDefaults("m").setProcessId(given.get("process").asText())
            .setState(MemberState.fromValue((byte) given.get("state").asInt())).setMemberEpoch(given.get("epoch").asInt())
            .setPreviousMemberEpoch(given.get("previous_epoch").asInt()).setAssignedTasks(held(given.get("held")))
            .setTasksPendingRevocation(held(given.get("revoking"))).build();
        CurrentAssignmentBuilder builder = new CurrentAssignmentBuilder(member)
            .withTargetAssignment(given.get("target_epoch").asInt(), tuple(given.get("target")))
            .withCurrentActiveTaskProcessId((sub, number) -> {
                JsonNode process = given.get("active").path(sub + "_" + number);
                return process.isMissingNode() ? null : process.asText();
            })
            .withCurrentStandbyTaskProcessIds(processes(given.get("standby")))
            .withCurrentWarmupTaskProcessIds(processes(given.get("warmup")))
            .withOwnedAssignment(given.get("owned").isNull() ? null : tuple(given.get("owned")));
        try {
            StreamsGroupMember after = builder.build();
            ObjectNode shown = answer.putObject("after").put("state", after.state().value()).put("epoch", after.memberEpoch());
            shown.put("previous_epoch", after.previousMemberEpoch());
            shown.set("held", shown(after.assignedTasks()));
            shown.set("revoking", shown(after.tasksPendingRevocation()));
        } catch (ApiException refusal) {
            answer.set("error", Ask.error(refusal));
        }
        return answer;
    }

    private static BiFunction<String, Integer, Set<String>> processes(JsonNode given) {
        return (sub, number) -> new HashSet<>(texts(given.path(sub + "_" + number)));
    }

    private static TasksTuple tuple(JsonNode given) {
        return new TasksTuple(tasks(given.get("active")), tasks(given.get("standby")), tasks(given.get("warmup")));
    }

    private static TasksTupleWithEpochs held(JsonNode given) {
        Map<String, Map<Integer, Integer>> active = new HashMap<>();
        given.get("active").properties().forEach(sub -> {
            Map<Integer, Integer> epochs = active.computeIfAbsent(sub.getKey(), key -> new HashMap<>());
            sub.getValue().properties().forEach(one -> epochs.put(Integer.valueOf(one.getKey()), one.getValue().asInt()));
        });
        return new TasksTupleWithEpochs(active, tasks(given.get("standby")), tasks(given.get("warmup")));
    }

    private static Map<String, Set<Integer>> tasks(JsonNode given) {
        Map<String, Set<Integer>> tasks = new HashMap<>();
        given.properties().forEach(sub -> sub.getValue().forEach(number ->
            tasks.computeIfAbsent(sub.getKey(), key -> new HashSet<>()).add(number.asInt())));
        return tasks;
    }

    private static Map<String, Map<Integer, Long>> offsets(JsonNode given) {
        Map<String, Map<Integer, Long>> offsets = new HashMap<>();
        given.properties().forEach(sub -> sub.getValue().properties().forEach(one -> offsets
            .computeIfAbsent(sub.getKey(), key -> new HashMap<>()).put(Integer.valueOf(one.getKey()), one.getValue().asLong())));
        return offsets;
    }

    private static ObjectNode shown(Map<String, Set<Integer>> tasks) {
        ObjectNode shown = Ask.object();
        new TreeMap<>(tasks).forEach((sub, numbers) -> {
            ArrayNode sorted = shown.putArray(sub);
            new TreeSet<>(numbers).forEach(sorted::add);
        });
        return shown;
    }

    private static ObjectNode shown(TasksTupleWithEpochs tasks) {
        ObjectNode shown = Ask.object();
        ObjectNode active = shown.putObject("active");
        new TreeMap<>(tasks.activeTasksWithEpochs()).forEach((sub, epochs) -> {
            ObjectNode sorted = active.putObject(sub);
            new TreeMap<>(epochs).forEach((number, epoch) -> sorted.put(number.toString(), epoch));
        });
        shown.set("standby", shown(tasks.standbyTasks()));
        return shown.set("warmup", shown(tasks.warmupTasks()));
    }

    private static List<String> names(JsonNode object) {
        List<String> names = new ArrayList<>();
        object.fieldNames().forEachRemaining(names::add);
        return names;
    }

    private static List<String> texts(JsonNode array) {
        List<String> texts = new ArrayList<>();
        array.forEach(text -> texts.add(text.asText()));
        return texts;
    }

    private static List<Short> shorts(JsonNode array) {
        List<Short> shorts = new ArrayList<>();
        array.forEach(number -> shorts.add((short) number.asInt()));
        return shorts;
    }
}
