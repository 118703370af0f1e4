import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.ApiVersionsResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.utils.AppInfoParser;
import org.apache.kafka.controller.QuorumFeatures;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.storage.internals.log.LogConfig;

/** The tables of a release: APIs and versions, layouts, error codes, configuration options. */
final class Tables {
    private static final Set<String> REFRESH = Set.of("InvalidMetadataException", "RefreshRetriableException");

    static List<String> schema(List<ObjectNode> cases, List<String> arguments) throws Exception {
        List<String> lines = new ArrayList<>(List.of("{", release() + ","));
        ObjectNode headers = Ask.object();
        headers.set("request", Ask.object().put("min", 1).put("max", 2));
        headers.set("response", Ask.object().put("min", 0).put("max", 1));
        lines.add("\"headers\": " + Ask.text(headers) + ",");
        lines.add("\"apis\": [");
        List<String> rows = new ArrayList<>();
        for (ApiMessageType type : ApiMessageType.values())
            rows.add("  " + Ask.text(api(type)));
        if (!arguments.contains("--whole"))
            return closed(lines, rows, "]", "}");
        ObjectNode features = Ask.object();
        new TreeMap<>(QuorumFeatures.defaultSupportedFeatureMap(false)).forEach((name, levels) ->
            features.set(name, Ask.object().put("min", levels.min()).put("max", levels.max())));
        return closed(lines, rows, "],", "\"features\": " + Ask.text(features), "}");
    }

    private static ObjectNode api(ApiMessageType type) {
        ApiKeys key = ApiKeys.forId(type.apiKey());
        ObjectNode row = Ask.object().put("api", type.apiKey()).put("name", type.name);
        row.put("min", type.lowestSupportedVersion()).put("max", type.highestSupportedVersion(true));
        row.put("max_stable", type.highestSupportedVersion(false));
        row.put("latest_version_unstable", type.latestVersionUnstable());
        boolean deprecated = type.highestDeprecatedVersion() >= 0;
        row.put("deprecated_min", deprecated ? type.lowestDeprecatedVersion() : null);
        row.put("deprecated_max", deprecated ? type.highestDeprecatedVersion() : null);
        ArrayNode listeners = row.putArray("listeners");
        type.listeners().forEach(listener -> listeners.add(listener.name()));
        row.put("cluster_action", key.clusterAction).put("forwardable", key.forwardable);
        row.set("request", versions(type, type.requestSchemas(), true));
        row.set("response", versions(type, type.responseSchemas(), false));
        ApiVersionsResponseData.ApiVersion shown =
            key.toApiVersionForApiResponse(false, ApiMessageType.ListenerType.BROKER).orElse(null);
        if (shown == null || !type.listeners().contains(ApiMessageType.ListenerType.BROKER))
            row.putNull("advertised_by_broker");
        else
            row.set("advertised_by_broker",
                Ask.object().put("min", shown.minVersion()).put("max", shown.maxVersion()));
        return row;
    }

    private static ObjectNode versions(ApiMessageType type, Schema[] schemas, boolean request) {
        int min = type.lowestSupportedVersion();
        int max = type.highestSupportedVersion(true);
        ObjectNode row = Ask.object().put("min", max < 0 ? -1 : min).put("max", max);
        row.putNull("flexible_from");
        ArrayNode headers = Ask.JSON.createArrayNode();
        for (int version = min; version <= max; version++) {
            short header = request ? type.requestHeaderVersion((short) version) : type.responseHeaderVersion((short) version);
            headers.add(header);
            if (row.get("flexible_from").isNull() && Layouts.flexible(schemas[version]))
                row.put("flexible_from", version);
        }
        row.set("header_versions", headers);
        return row;
    }

    static List<String> layouts(List<ObjectNode> cases, List<String> arguments) throws Exception {
        List<String> lines = new ArrayList<>();
        List<Layouts.Message> messages = new ArrayList<>(Layouts.all());
        if (arguments.contains("--whole"))
            messages.addAll(Layouts.records());
        for (Layouts.Message message : messages)
            for (int version : message.versions())
                lines.add(Ask.text(Layouts.row(message, version)));
        return lines;
    }

    static List<String> errors(List<ObjectNode> cases, List<String> arguments) throws Exception {
        List<String> rows = new ArrayList<>();
        for (Errors error : Errors.values()) {
            Throwable exception = error.exception();
            ObjectNode row = Ask.object().put("code", error.code()).put("name", error.name());
            row.put("exception", exception == null ? null : exception.getClass().getName());
            row.put("retriable", exception instanceof RetriableException);
            List<String> supers = new ArrayList<>();
            for (Class<?> kind = exception == null ? null : exception.getClass().getSuperclass();
                    kind != null && kind != RuntimeException.class; kind = kind.getSuperclass())
                supers.add(kind.getSimpleName());
            row.put("refresh_metadata", supers.stream().anyMatch(REFRESH::contains));
            row.set("supers", Ask.JSON.valueToTree(supers));
            rows.add(Ask.text(row));
        }
        List<String> lines = new ArrayList<>(List.of("{" + release().replace(": ", ":") + ",\"errors\":["));
        return closed(lines, rows, "]}");
    }

    /** Every option of topics, groups and clients; of the broker's those that the cases name. */
    static List<String> configs(List<ObjectNode> cases, List<String> arguments) throws Exception {
        Set<String> wanted = new HashSet<>();
        for (JsonNode option : cases.get(0).get("broker"))
            wanted.add(option.get("name").asText());
        Map<String, ConfigDef> tables = new LinkedHashMap<>();
        tables.put("broker", kafka.server.KafkaConfig.configDef());
        tables.put("topic", LogConfig.configDefCopy());
        tables.put("group", GroupConfig.CONFIG_DEF);
        tables.put("consumer", ConsumerConfig.configDef());
        tables.put("producer", ProducerConfig.configDef());
        tables.put("admin", AdminClientConfig.configDef());
        List<String> lines = new ArrayList<>(List.of("{", release() + ","));
        boolean whole = arguments.contains("--whole");
        for (Map.Entry<String, ConfigDef> table : tables.entrySet()) {
            lines.add("\"" + table.getKey() + "\": [");
            List<String> rows = new ArrayList<>();
            for (ConfigDef.ConfigKey key : new TreeMap<>(table.getValue().configKeys()).values())
                if (whole || !table.getKey().equals("broker") || wanted.contains(key.name))
                    rows.add("  " + Ask.text(option(table.getKey(), key)));
            closed(lines, rows, table.getKey().equals("admin") ? "]" : "],");
        }
        lines.add("}");
        return lines;
    }

    private static ObjectNode option(String table, ConfigDef.ConfigKey key) {
        ObjectNode row = Ask.object().put("name", key.name).put("type", key.type().name());
        Object value = key.defaultValue;
        if (!key.hasDefault())
            row.put("required", true);
        else
            row.set("default", Ask.JSON.valueToTree(
                value instanceof Class<?> kind ? kind.getName() : value instanceof Password secret ? secret.value() : value));
        String valid = key.validator == null ? "" : key.validator.toString();
        row.put("valid", valid.isEmpty() ? null : valid);
        row.put("importance", key.importance.name());
        if (key.internalConfig)
            row.put("internal", true);
        if (table.equals("topic"))
            row.put("broker_synonym", ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.containsKey(key.name)
                ? ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.get(key.name).get(0).name() : null);
        if (table.equals("group"))
            row.put("broker_synonym", GroupConfig.ALL_GROUP_CONFIG_SYNONYMS.get(key.name).orElse(null));
        return row;
    }

    private static String release() {
        return "\"release\": \"" + AppInfoParser.getVersion() + "\"";
    }

    private static List<String> closed(List<String> lines, List<String> rows, String... ends) {
        for (int i = 0; i < rows.size(); i++)
            lines.add(rows.get(i) + (i + 1 < rows.size() ? "," : ""));
        lines.addAll(Arrays.asList(ends));
        return lines;
    }
}
