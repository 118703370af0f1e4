import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.sasl.SaslException;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.SaslConfigs;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.JaasContext;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.security.scram.internals.ScramFormatter;
import org.apache.kafka.common.security.scram.internals.ScramMechanism;
import org.apache.kafka.common.security.scram.internals.ScramMessages.ClientFinalMessage;
import org.apache.kafka.common.security.scram.internals.ScramMessages.ClientFirstMessage;
import org.apache.kafka.common.security.scram.internals.ScramMessages.ServerFinalMessage;
import org.apache.kafka.common.security.scram.internals.ScramMessages.ServerFirstMessage;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;

/** SCRAM exchanges, principals of certificates, JAAS lines, and the decisions of the authorizer. */
final class Security {
    static ObjectNode security(ObjectNode given) throws Exception {
        return switch (given.get("kind").asText()) {
            case "scram" -> exchange(given);
            case "ssl_principal" -> principal(given);
            case "jaas" -> jaas(given);
            default -> parsed(given);
        };
    }

    private static ObjectNode exchange(ObjectNode given) throws Exception {
        ObjectNode answer = Ask.inputs(given, "kind", "mechanism", "user", "password", "salt", "iterations",
            "client_nonce", "server_nonce");
        ScramFormatter formatter = new ScramFormatter(ScramMechanism.forMechanismName(given.get("mechanism").asText()));
        byte[] salt = Ask.HEX.parseHex(given.get("salt").asText());
        int iterations = given.get("iterations").asInt();
        byte[] salted = formatter.saltedPassword(given.get("password").asText(), salt, iterations);
        byte[] stored = formatter.storedKey(formatter.clientKey(salted));
        byte[] server = formatter.serverKey(salted);
        answer.put("salted_password", Ask.HEX.formatHex(salted));
        answer.put("stored_key", Ask.HEX.formatHex(stored)).put("server_key", Ask.HEX.formatHex(server));
        String nonce = given.get("client_nonce").asText();
        ClientFirstMessage first = new ClientFirstMessage(ScramFormatter.saslName(given.get("user").asText()), nonce, Map.of());
        ServerFirstMessage challenge = new ServerFirstMessage(nonce, given.get("server_nonce").asText(), salt, iterations);
        ClientFinalMessage last = new ClientFinalMessage("n,,".getBytes(StandardCharsets.UTF_8), challenge.nonce());
        last.proof(formatter.clientProof(salted, first, challenge, last));
        ServerFinalMessage end = new ServerFinalMessage(null, formatter.serverSignature(server, first, challenge, last));
        answer.put("client_first", text(first.toBytes())).put("server_first", text(challenge.toBytes()));
        return answer.put("client_final", text(last.toBytes())).put("server_final", text(end.toBytes()));
    }

    private static String text(byte[] bytes) {
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static ObjectNode parsed(ObjectNode given) {
        ObjectNode answer = Ask.inputs(given, "kind", "text");
        byte[] bytes = given.get("text").asText().getBytes(StandardCharsets.UTF_8);
        ObjectNode parsed = Ask.object();
        try {
            switch (given.get("kind").asText()) {
                case "client_first" -> {
                    ClientFirstMessage read = new ClientFirstMessage(bytes);
                    parsed.put("sasl_name", read.saslName()).put("nonce", read.nonce());
                    parsed.put("authorization_id", read.authorizationId());
                }
                case "server_first" -> {
                    ServerFirstMessage read = new ServerFirstMessage(bytes);
                    parsed.put("nonce", read.nonce()).put("salt", Ask.HEX.formatHex(read.salt()));
                    parsed.put("iterations", read.iterations());
                }
                case "client_final" -> {
                    ClientFinalMessage read = new ClientFinalMessage(bytes);
                    parsed.put("channel_binding", Ask.HEX.formatHex(read.channelBinding())).put("nonce", read.nonce());
                    parsed.put("proof", Ask.HEX.formatHex(read.proof()));
                }
                default -> {
                    ServerFinalMessage read = new ServerFinalMessage(bytes);
                    parsed.put("error", read.error());
                    parsed.put("signature", read.serverSignature() == null ? null : Ask.HEX.formatHex(read.serverSignature()));
                }
            }
            return answer.set("parsed", parsed);
        } catch (SaslException | RuntimeException refusal) {
            return answer.put("error", refusal.getClass().getSimpleName());
        }
    }

    private static ObjectNode principal(ObjectNode given) {
        ObjectNode answer = Ask.inputs(given, "kind", "rules", "name");
        try {
            return answer.put("principal",
                SslPrincipalMapper.fromRules(given.get("rules").asText()).getName(given.get("name").asText()));
        } catch (java.io.IOException | RuntimeException refusal) {
            return answer.put("error", refusal.getClass().getSimpleName());
        }
    }

    private static ObjectNode jaas(ObjectNode given) {
        ObjectNode answer = Ask.inputs(given, "kind", "text");
        try {
            Password line = new Password(given.get("text").asText());
            ArrayNode entries = Ask.JSON.createArrayNode();
            List<AppConfigurationEntry> read =
                JaasContext.loadClientContext(Map.of(SaslConfigs.SASL_JAAS_CONFIG, line)).configurationEntries();
            for (AppConfigurationEntry entry : read) {
                ObjectNode row = entries.addObject().put("module", entry.getLoginModuleName());
                row.put("flag", entry.getControlFlag().toString());
                row.set("options", Ask.JSON.valueToTree(new TreeMap<>(entry.getOptions())));
            }
            return answer.set("entries", entries);
        } catch (RuntimeException refusal) {
            return answer.put("error", refusal.getClass().getSimpleName()).put("message", refusal.getMessage());
        }
    }

    static ObjectNode acls(ObjectNode given) throws Exception {
        ObjectNode answer = Ask.inputs(given, "allow_everyone", "acls");
        StandardAuthorizer authorizer = new StandardAuthorizer();
        authorizer.configure(Map.of(
            StandardAuthorizer.SUPER_USERS_CONFIG, "User:root;User:CN=x,O=y",
            StandardAuthorizer.ALLOW_EVERYONE_IF_NO_ACL_IS_FOUND_CONFIG, given.get("allow_everyone").asText()));
        authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), Map.of()));
        authorizer.completeInitialLoad();
        long number = 0;
        for (JsonNode acl : given.get("acls"))
            authorizer.addAcl(new Uuid(7, ++number), new StandardAcl(
                ResourceType.fromCode(code(acl, "resource_type")), acl.get("resource_name").asText(),
                PatternType.fromCode(code(acl, "pattern_type")), acl.get("principal").asText(), acl.get("host").asText(),
                AclOperation.fromCode(code(acl, "operation")), AclPermissionType.fromCode(code(acl, "permission"))));
        ArrayNode asked = answer.putArray("asked");
        for (JsonNode one : given.get("asked")) {
            ResourcePattern resource = new ResourcePattern(ResourceType.fromCode(code(one, "resource_type")),
                one.get("resource_name").asText(), PatternType.LITERAL);
            Action action = new Action(AclOperation.fromCode(code(one, "operation")), resource, 1, false, false);
            AuthorizationResult result =
                authorizer.authorize(new Context(one.get("user").asText(), one.get("host").asText()), List.of(action)).get(0);
            asked.add(Ask.inputs((ObjectNode) one, "quirk", "user", "host", "resource_type", "resource_name", "operation")
                .put("allowed", result == AuthorizationResult.ALLOWED));
        }
        ArrayNode any = answer.putArray("any_topic");
        for (JsonNode one : given.get("any_topic")) {
            AuthorizationResult result = authorizer.authorizeByResourceType(new Context(one.get("user").asText(), "127.0.0.1"),
                AclOperation.fromCode(code(one, "operation")), ResourceType.TOPIC);
            any.add(Ask.inputs((ObjectNode) one, "user", "operation").put("allowed", result == AuthorizationResult.ALLOWED));
        }
        return answer;
    }

    private static byte code(JsonNode node, String name) {
        return (byte) node.get(name).asInt();
    }

    private record Context(String user, String host) implements AuthorizableRequestContext {
        @Override
        public String listenerName() {
            return "PLAINTEXT";
        }

        @Override
        public SecurityProtocol securityProtocol() {
            return SecurityProtocol.SASL_PLAINTEXT;
        }

        @Override
        public KafkaPrincipal principal() {
            return new KafkaPrincipal(KafkaPrincipal.USER_TYPE, user);
        }

        @Override
        public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(host);
            } catch (java.net.UnknownHostException impossible) {
                throw new IllegalArgumentException(impossible);
            }
        }

        @Override
        public int requestType() {
            return 1;
        }

        @Override
        public int requestVersion() {
            return 1;
        }

        @Override
        public String clientId() {
            return "client";
        }

        @Override
        public int correlationId() {
            return 1;
        }
    }
}
