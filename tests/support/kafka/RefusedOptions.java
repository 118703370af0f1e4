import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.serialization.*;

/** Prints those of the options (name=value) with which Kafka's own consumer, or share consumer, is not created. */
public class RefusedOptions {
    public static void main(String[] args) {
        for (String option : List.of(args).subList(1, args.length)) {
            Properties all = new Properties();
            all.put("bootstrap.servers", "127.0.0.1:1");
            all.put("group.id", "g");
            if (!args[0].equals("share"))
                all.put("group.protocol", args[0]);
            all.put(option.split("=")[0], option.split("=")[1]);
            try {
                create(args[0], all).close();
            } catch (Exception error) {
                Throwable cause = error instanceof ConfigException ? error : error.getCause();
                if (cause instanceof ConfigException && cause.getMessage().contains("cannot be set"))
                    System.out.println(option.split("=")[0]);
            }
        }
    }

    static AutoCloseable create(String protocol, Properties all) {
        var bytes = new ByteArrayDeserializer();
        return protocol.equals("share") ? new KafkaShareConsumer<>(all, bytes, bytes) : new KafkaConsumer<>(all, bytes, bytes);
    }
}
