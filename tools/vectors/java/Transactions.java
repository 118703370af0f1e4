import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.coordinator.transaction.TransactionLog;
import org.apache.kafka.coordinator.transaction.TransactionMetadata;
import org.apache.kafka.coordinator.transaction.TransactionState;
import org.apache.kafka.coordinator.transaction.TxnTransitMetadata;
import org.apache.kafka.server.common.TransactionVersion;

/** The transaction coordinator: every move of a transactional id, and what it writes and loads. */
final class Transactions {
    private static final long NOW = 1_750_000_000_000L;

    static ObjectNode move(ObjectNode given) {
        ObjectNode answer = Ask.inputs(given, "given", "do");
        TransactionMetadata metadata = metadata(given.get("given"));
        JsonNode move = given.get("do");
        TxnTransitMetadata record;
        try {
            record = prepared(metadata, move);
        } catch (RuntimeException refusal) {
            return answer.set("refused", Ask.error(refusal));
        }
        answer.set("record", shown(record));
        if (Set.of("fence", "expire").contains(move.get("op").asText()))
            return answer; // the coordinator never completes these
        try {
            metadata.completeTransitionTo(record);
            return answer.set("after", shown(metadata));
        } catch (RuntimeException defect) {
            return answer.set("not_completed", Ask.error(defect));
        }
    }

    private static TxnTransitMetadata prepared(TransactionMetadata metadata, JsonNode move) {
        String op = move.get("op").asText();
        int timeout = move.path("timeout_ms").asInt();
        return switch (op) {
            case "fence" -> metadata.prepareFenceProducerEpoch();
            case "bump" -> metadata.prepareIncrementProducerEpoch(timeout, move.get("expected_epoch").isNull()
                ? Optional.empty() : Optional.of((short) move.get("expected_epoch").asInt()), NOW);
            case "rotate" -> metadata.prepareProducerIdRotation(
                move.get("new_producer_id").asLong(), timeout, NOW, move.get("expected_given").asBoolean());
            case "add" -> metadata.prepareAddPartitions(Set.of(new TopicPartition("t", 1)), NOW, version(move));
            case "commit", "abort" -> metadata.prepareAbortOrCommit(
                op.equals("commit") ? TransactionState.PREPARE_COMMIT : TransactionState.PREPARE_ABORT, version(move),
                move.get("next_producer_id").asLong(), NOW, move.get("nothing_added").asBoolean());
            case "complete" -> metadata.prepareComplete(NOW);
            case "expire" -> metadata.prepareDead();
            default -> throw new AssertionError("no such move: " + op);
        };
    }

    static ObjectNode written(ObjectNode given) {
        ObjectNode answer = Ask.inputs(given, "what", "transaction_version", "id", "given");
        if (!given.has("given"))
            return answer.<ObjectNode>setAll(Ask.inputs(given, "key_hex", "value_hex"))
                .set("loaded", loaded(Clients.bytes(given.get("key_hex")), Clients.bytes(given.get("value_hex"))));
        byte[] key = TransactionLog.keyToBytes(given.get("id").asText());
        answer.put("key_hex", Ask.HEX.formatHex(key));
        try {
            short level = (short) given.get("transaction_version").asInt();
            byte[] value = TransactionLog.valueToBytes(transit(given.get("given")), TransactionVersion.fromFeatureLevel(level));
            answer.put("value_hex", Ask.HEX.formatHex(value));
            return answer.set("loaded", loaded(ByteBuffer.wrap(key), ByteBuffer.wrap(value)));
        } catch (RuntimeException refusal) {
            return answer.set("refused", Ask.error(refusal));
        }
    }

    private static ObjectNode loaded(ByteBuffer key, ByteBuffer value) {
        try {
            TransactionLog.ReadResult read = TransactionLog.read(key, value);
            if (read instanceof TransactionLog.TxnTombstone gone)
                return Ask.object().put("removed", gone.transactionId());
            if (read instanceof TransactionLog.UnknownKeyVersion unknown)
                return Ask.object().put("skipped", "key version " + unknown.version());
            if (read instanceof TransactionLog.UnknownValueVersion unknown)
                return Ask.object().put("skipped", "value version " + unknown.version());
            TransactionLog.TxnRecord record = (TransactionLog.TxnRecord) read;
            return Ask.object().put("id", record.transactionId()).set("metadata", shown(record.metadata()));
        } catch (RuntimeException failure) {
            return Ask.object().set("fails", Ask.error(failure));
        }
    }

    private static TransactionMetadata metadata(JsonNode given) {
        TransactionMetadata metadata = new TransactionMetadata("id", given.get("producer_id").asLong(),
            given.get("previous_producer_id").asLong(), given.get("next_producer_id").asLong(),
            (short) given.get("epoch").asInt(), (short) given.get("last_epoch").asInt(), given.get("timeout_ms").asInt(),
            state(given.get("state").asText()), partitions(given), given.get("start_ms").asLong(),
            given.get("updated_ms").asLong(), version(given));
        if (given.hasNonNull("pending"))
            metadata.pendingState(Optional.of(state(given.get("pending").asText())));
        return metadata;
    }

    private static TxnTransitMetadata transit(JsonNode given) {
        return new TxnTransitMetadata(given.get("producer_id").asLong(), given.get("previous_producer_id").asLong(),
            given.get("next_producer_id").asLong(), (short) given.get("epoch").asInt(),
            (short) given.get("last_epoch").asInt(), given.get("timeout_ms").asInt(), state(given.get("state").asText()),
            partitions(given), given.get("start_ms").asLong(), given.get("updated_ms").asLong(), version(given));
    }

    private static TransactionVersion version(JsonNode given) {
        return TransactionVersion.fromFeatureLevel((short) given.get("client_version").asInt());
    }

    private static TransactionState state(String name) {
        for (TransactionState state : TransactionState.values())
            if (state.stateName().equals(name))
                return state;
        throw new AssertionError("no such state: " + name);
    }

    private static HashSet<TopicPartition> partitions(JsonNode given) {
        HashSet<TopicPartition> partitions = new HashSet<>();
        for (JsonNode one : given.get("partitions")) {
            int dash = one.asText().lastIndexOf('-');
            partitions.add(new TopicPartition(one.asText().substring(0, dash),
                Integer.parseInt(one.asText().substring(dash + 1))));
        }
        return partitions;
    }

    private static ObjectNode shown(TxnTransitMetadata record) {
        ObjectNode row = Ask.object().put("state", record.txnState().stateName()).put("producer_id", record.producerId());
        row.put("previous_producer_id", record.prevProducerId()).put("next_producer_id", record.nextProducerId());
        row.put("epoch", record.producerEpoch()).put("last_epoch", record.lastProducerEpoch());
        row.put("timeout_ms", record.txnTimeoutMs()).put("start_ms", record.txnStartTimestamp());
        row.put("updated_ms", record.txnLastUpdateTimestamp());
        row.put("client_version", record.clientTransactionVersion().featureLevel());
        return names(row, record.topicPartitions());
    }

    private static ObjectNode shown(TransactionMetadata metadata) {
        ObjectNode row = Ask.object().put("state", metadata.state().stateName());
        row.put("pending", metadata.pendingState().map(TransactionState::stateName).orElse(null));
        row.put("producer_id", metadata.producerId()).put("previous_producer_id", metadata.prevProducerId());
        row.put("epoch", metadata.producerEpoch()).put("last_epoch", metadata.lastProducerEpoch());
        row.put("timeout_ms", metadata.txnTimeoutMs()).put("start_ms", metadata.txnStartTimestamp());
        row.put("updated_ms", metadata.txnLastUpdateTimestamp());
        row.put("client_version", metadata.clientTransactionVersion().featureLevel());
        return names(row, metadata.topicPartitions());
    }

    private static ObjectNode names(ObjectNode row, Collection<TopicPartition> partitions) {
        return row.set("partitions", Ask.JSON.valueToTree(partitions.stream().map(TopicPartition::toString).sorted().toList()));
    }
}
