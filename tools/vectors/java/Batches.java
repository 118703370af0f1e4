import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.DefaultRecordBatch;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.requests.ProduceRequest;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.CloseableIterator;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.PrimitiveRef;
import org.apache.kafka.storage.internals.log.AppendOrigin;
import org.apache.kafka.storage.internals.log.LogValidator;
import org.apache.kafka.storage.internals.log.LogValidator.ValidationResult;

/** Record batches as a consumer reads them, and as a broker appends them. */
final class Batches {
    private static final long NOW = 1_750_000_000_000L;
    private static final long NEXT_OFFSET = 1000;
    private static final int LEADER_EPOCH = 7;
    private static final short PRODUCE_VERSION = 12;

    static ObjectNode batches(ObjectNode given) {
        ObjectNode answer = Ask.inputs(given, "id", "case", "hex");
        if (!given.has("hex"))
            return answer.set("error", unbuilt());
        byte[] bytes = Ask.HEX.parseHex(given.get("hex").asText());
        read(answer, MemoryRecords.readableRecords(ByteBuffer.wrap(bytes.clone())));
        if (given.has("append"))
            answer.set("append", appended(bytes));
        return answer;
    }

    /** The only cases without bytes: a legacy message that zstd was to compress. */
    private static ObjectNode unbuilt() {
        try {
            MemoryRecords.withRecords((byte) 1, Compression.zstd().build(), new SimpleRecord(NOW, new byte[1]));
            return Ask.object();
        } catch (RuntimeException refusal) {
            return Ask.error(refusal).put("stage", "build");
        }
    }

    private static void read(ObjectNode answer, MemoryRecords records) {
        ArrayNode batches = answer.putArray("batches");
        String stage = "cut";
        try {
            Iterator<MutableRecordBatch> found = records.batches().iterator();
            while (found.hasNext()) {
                RecordBatch batch = found.next();
                stage = "validate";
                batch.ensureValid();
                stage = "header";
                ObjectNode row = header(batch);
                ArrayNode rows = row.putArray("records");
                batches.add(row);
                stage = "records";
                try (CloseableIterator<Record> inner = batch.streamingIterator(BufferSupplier.NO_CACHING)) {
                    while (inner.hasNext())
                        rows.add(record(batch, inner.next()));
                }
                stage = "cut";
            }
        } catch (RuntimeException refusal) {
            answer.set("error", Ask.error(refusal).put("stage", stage));
        }
    }

    private static ObjectNode header(RecordBatch batch) {
        ObjectNode row = Ask.object().put("magic", batch.magic()).put("size", batch.sizeInBytes());
        row.put("base_offset", batch.baseOffset()).put("last_offset", batch.lastOffset());
        row.put("next_offset", batch.nextOffset()).put("crc", batch.checksum()).put("codec", batch.compressionType().name);
        row.put("timestamp_type", batch.timestampType().name).put("max_timestamp", batch.maxTimestamp());
        if (batch.magic() < RecordBatch.MAGIC_VALUE_V2)
            return row;
        row.put("leader_epoch", batch.partitionLeaderEpoch()).put("base_timestamp", ((DefaultRecordBatch) batch).baseTimestamp());
        row.put("producer_id", batch.producerId()).put("producer_epoch", batch.producerEpoch());
        row.put("base_sequence", batch.baseSequence()).put("last_sequence", batch.lastSequence());
        row.put("transactional", batch.isTransactional()).put("control", batch.isControlBatch()).put("count", batch.countOrNull());
        row.set("delete_horizon_ms",
            Ask.JSON.valueToTree(batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : null));
        return row;
    }

    private static ObjectNode record(RecordBatch batch, Record record) {
        ObjectNode row = Ask.object().put("offset", record.offset()).put("timestamp", record.timestamp());
        if (batch.magic() >= RecordBatch.MAGIC_VALUE_V2)
            row.put("sequence", record.sequence());
        row.put("key", record.hasKey() ? Messages.hex(record.key()) : null);
        row.put("value", record.hasValue() ? Messages.hex(record.value()) : null);
        if (record.headers().length > 0) {
            ArrayNode headers = row.putArray("headers");
            for (Header header : record.headers())
                headers.addArray().add(header.key()).add(header.value() == null ? null : Ask.HEX.formatHex(header.value()));
        }
        if (batch.isControlBatch())
            control(row, record);
        return row;
    }

    private static void control(ObjectNode row, Record record) {
        try {
            ControlRecordType type = ControlRecordType.parse(record.key());
            row.put("control_type", type.name());
            if (type == ControlRecordType.COMMIT || type == ControlRecordType.ABORT)
                row.put("coordinator_epoch", EndTransactionMarker.deserialize(record).coordinatorEpoch());
        } catch (RuntimeException refusal) {
            row.set("control_error", Ask.error(refusal).put("stage", "control"));
        }
    }

    /** What a partition makes of these bytes: the request is checked, then each batch, then offsets are given out. */
    private static ObjectNode appended(byte[] bytes) {
        String stage = "request";
        try {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes.clone()));
            ProduceRequest.validateRecords(PRODUCE_VERSION, records);
            stage = "validate";
            int valid = 0;
            CompressionType codec = CompressionType.NONE;
            for (MutableRecordBatch batch : records.batches()) {
                batch.ensureValid();
                valid += batch.sizeInBytes();
                codec = batch.compressionType();
            }
            stage = "offsets";
            ByteBuffer kept = ByteBuffer.wrap(Arrays.copyOf(bytes, valid));
            LogValidator validator = new LogValidator(MemoryRecords.readableRecords(kept), new TopicPartition("t", 0),
                Time.SYSTEM, codec, Compression.of(codec).build(), false, RecordBatch.MAGIC_VALUE_V2,
                TimestampType.CREATE_TIME, Long.MAX_VALUE, Long.MAX_VALUE, LEADER_EPOCH, AppendOrigin.CLIENT);
            ValidationResult result = validator.validateMessagesAndAssignOffsets(
                PrimitiveRef.ofLong(NEXT_OFFSET), new Uncounted(), BufferSupplier.NO_CACHING);
            return accepted(Arrays.copyOf(bytes, valid), result);
        } catch (RuntimeException refusal) {
            return Ask.object().put("accepted", false).set("error", Ask.error(refusal).put("stage", stage));
        }
    }

    private static ObjectNode accepted(byte[] before, ValidationResult result) {
        String after = Messages.hex(result.validatedRecords().buffer());
        String old = Ask.HEX.formatHex(before);
        boolean inPlace = after.length() == old.length() && after.substring(42).equals(old.substring(42));
        ObjectNode answer = Ask.object().put("accepted", true).put("max_timestamp", result.maxTimestampMs());
        answer.put("in_place", inPlace);
        return inPlace ? answer.put("first_21_bytes", after.substring(0, 42)) : answer.put("hex", after);
    }

    private static final class Uncounted implements LogValidator.MetricsRecorder {
        @Override
        public void recordInvalidMagic() { }

        @Override
        public void recordInvalidOffset() { }

        @Override
        public void recordInvalidSequence() { }

        @Override
        public void recordInvalidChecksums() { }

        @Override
        public void recordNoKeyCompactedTopic() { }
    }
}
