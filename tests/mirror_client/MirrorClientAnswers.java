import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.connect.mirror.Checkpoint;
import org.apache.kafka.connect.mirror.Heartbeat;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * Prints what Kafka's own client library says about a mirror's target: one JSON object, on one line.
 *
 *     MirrorClientAnswers BOOTSTRAP POLICY ALIAS,ALIAS... [SOURCE GROUP,GROUP...]
 *
 * SOURCE is the alias whose checkpoints translate the offsets of the groups.
 */
public final class MirrorClientAnswers {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final Duration POLL = Duration.ofMillis(200);

    private final Map<String, Object> client;
    private final Map<String, Object> answers = new TreeMap<>();

    private MirrorClientAnswers(String bootstrap, String policy) {
        this.client = Map.of("bootstrap.servers", bootstrap, "replication.policy.class", policy);
    }

    public static void main(String[] args) throws Exception {
        MirrorClientAnswers asker = new MirrorClientAnswers(args[0], args[1]);
        asker.askAboutTopics(List.of(args[2].split(",")));
        if (args.length > 3) {
            asker.askAboutGroups(args[3], List.of(args[4].split(",")));
        }
        System.out.println(new ObjectMapper().writeValueAsString(asker.answers));
    }

    private void askAboutTopics(List<String> aliases) throws Exception {
        Map<String, Integer> hops = new TreeMap<>();
        Map<String, Object> remoteTopics = new TreeMap<>();
        try (MirrorClient asked = new MirrorClient(client)) {
            for (String alias : aliases) {
                hops.put(alias, RemoteClusterUtils.replicationHops(client, alias));
                check(hops.get(alias) == asked.replicationHops(alias), "two answers about hops");
                remoteTopics.put(alias, new TreeSet<>(asked.remoteTopics(alias)));
            }
            answers.put("remoteTopics", new TreeSet<>(asked.remoteTopics()));
        }
        answers.put("replicationHops", hops);
        answers.put("remoteTopicsBySource", remoteTopics);
        answers.put("upstreamClusters", new TreeSet<>(RemoteClusterUtils.upstreamClusters(client)));
        answers.put("heartbeatTopics", new TreeSet<>(RemoteClusterUtils.heartbeatTopics(client)));
        answers.put("checkpointTopics", new TreeSet<>(RemoteClusterUtils.checkpointTopics(client)));
        Map<String, Object> heartbeats = new TreeMap<>();
        for (String topic : RemoteClusterUtils.heartbeatTopics(client)) {
            heartbeats.put(topic, readKeys(topic, MirrorClientAnswers::heartbeatKey));
        }
        answers.put("heartbeats", heartbeats);
        Map<String, Object> checkpoints = new TreeMap<>();
        for (String topic : RemoteClusterUtils.checkpointTopics(client)) {
            checkpoints.put(topic, readKeys(topic, MirrorClientAnswers::checkpointKey));
        }
        answers.put("checkpoints", checkpoints);
    }

    private void askAboutGroups(String source, List<String> groups) throws Exception {
        Map<String, Object> offsets = new TreeMap<>();
        for (String group : groups) {
            Map<TopicPartition, OffsetAndMetadata> found =
                RemoteClusterUtils.translateOffsets(client, source, group, TIMEOUT);
            offsets.put(group, describe(found));
        }
        answers.put("remoteConsumerOffsets", offsets);
        Map<String, Object> byPattern = new TreeMap<>();
        Pattern pattern = Pattern.compile(String.join("|", groups));
        RemoteClusterUtils.translateOffsets(client, source, pattern, TIMEOUT)
            .forEach((group, found) -> byPattern.put(group, describe(found)));
        answers.put("remoteConsumerOffsetsByPattern", byPattern);
    }

    private static Map<String, Object> describe(Map<TopicPartition, OffsetAndMetadata> offsets) {
        Map<String, Object> described = new TreeMap<>();
        offsets.forEach((where, found) -> described.put(
            where.toString(), List.of(found.offset(), found.metadata())));
        return described;
    }

    private static String heartbeatKey(ConsumerRecord<byte[], byte[]> record) {
        Heartbeat found = Heartbeat.deserializeRecord(record);
        check(found.timestamp() > 0, "a heartbeat without time: " + found);
        return found.sourceClusterAlias() + "->" + found.targetClusterAlias();
    }

    private static String checkpointKey(ConsumerRecord<byte[], byte[]> record) {
        Checkpoint found = Checkpoint.deserializeRecord(record);
        check(found.downstreamOffset() >= 0, "a checkpoint below zero: " + found);
        return found.consumerGroupId() + " " + found.topicPartition();
    }

    /** What the records of partition 0 are about, each once. */
    private TreeSet<String> readKeys(
            String topic, Function<ConsumerRecord<byte[], byte[]>, String> key) {
        TreeSet<String> keys = new TreeSet<>();
        TopicPartition partition = new TopicPartition(topic, 0);
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(client, bytes, bytes)) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            while (consumer.position(partition) < end) {
                consumer.poll(POLL).forEach(record -> keys.add(key.apply(record)));
            }
        }
        return keys;
    }

    private static void check(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise);
        }
    }
}
