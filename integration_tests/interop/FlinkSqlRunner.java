import java.math.BigDecimal;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.StringJoiner;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.apache.flink.api.common.RuntimeExecutionMode;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.DeploymentOptions;
import org.apache.flink.configuration.ExecutionOptions;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ResultKind;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Runs SQL scripts on one local Flink cluster: a path per line in, the rows of each statement out.
 *
 * <p>A row is a JSON list: its kind, then its fields. Values without an exact form in JSON are objects of one entry.
 * A statement ends with a line "done", a script with "end", or with "failed" and the reason.
 */
public final class FlinkSqlRunner {
    private static final Pattern SET = Pattern.compile("SET\\s+'([^']+)'\\s*=\\s*'([^']*)'\\s*;?");
    private static final String MODE = ExecutionOptions.RUNTIME_MODE.key();

    private FlinkSqlRunner() {}

    public static void main(String[] args) throws Exception {
        Configuration settings = new Configuration();
        settings.set(RestOptions.BIND_PORT, "0");
        settings.set(RestOptions.BIND_ADDRESS, "127.0.0.1");
        settings.set(RestOptions.ADDRESS, "127.0.0.1");
        MiniClusterConfiguration made =
                new MiniClusterConfiguration.Builder()
                        .setConfiguration(settings)
                        .setNumTaskManagers(1)
                        .setNumSlotsPerTaskManager(2)
                        .build();
        try (MiniCluster cluster = new MiniCluster(made); Scanner scripts = new Scanner(System.in)) {
            cluster.start();
            settings.set(DeploymentOptions.TARGET, "remote");
            settings.set(RestOptions.PORT, cluster.getRestAddress().get().getPort());
            say("ready");
            while (scripts.hasNextLine()) {
                try {
                    run(statements(Files.readString(Path.of(scripts.nextLine()))), settings);
                    say("end");
                } catch (Exception failed) {
                    failed.printStackTrace();
                    say("failed\t" + String.valueOf(failed).replace('\n', ' '));
                }
            }
        }
    }

    private static List<String> statements(String script) {
        List<String> found = new ArrayList<>();
        for (String statement : script.split(";[^\\S\\n]*(--[^\\n]*)?(\\n|$)")) {
            String text = statement.replaceAll("(?m)^\\s*--.*$", "").strip();
            if (!text.isEmpty()) {
                found.add(text);
            }
        }
        return found;
    }

    private static void run(List<String> statements, Configuration settings) throws Exception {
        EnvironmentSettings.Builder builder = EnvironmentSettings.newInstance().withConfiguration(settings);
        builder = isBatch(statements) ? builder.inBatchMode() : builder.inStreamingMode();
        TableEnvironment tables = TableEnvironment.create(builder.build());
        tables.getConfig().set("parallelism.default", "2");
        for (String statement : statements) {
            Matcher set = SET.matcher(statement);
            if (!set.matches()) {
                answer(tables.executeSql(statement));
            } else if (!set.group(1).equals(MODE)) {
                tables.getConfig().set(set.group(1), set.group(2));
            }
            say("done");
        }
    }

    /** The mode belongs to the environment, so a script has one: the one that it sets. */
    private static boolean isBatch(List<String> statements) {
        for (String statement : statements) {
            Matcher set = SET.matcher(statement);
            if (set.matches() && set.group(1).equals(MODE)) {
                return RuntimeExecutionMode.valueOf(set.group(2).toUpperCase()) == RuntimeExecutionMode.BATCH;
            }
        }
        return false;
    }

    private static void answer(TableResult result) throws Exception {
        if (result.getResultKind() == ResultKind.SUCCESS) {
            return;
        }
        try (CloseableIterator<Row> rows = result.collect()) {
            while (rows.hasNext()) {
                Row row = rows.next();
                say(fields('"' + row.getKind().shortString() + '"', row));
            }
        }
    }

    private static String fields(String first, Row row) {
        StringJoiner line = new StringJoiner(",", "[", "]");
        if (first != null) {
            line.add(first);
        }
        for (int field = 0; field < row.getArity(); field++) {
            line.add(json(row.getField(field)));
        }
        return line.toString();
    }

    private static String json(Object value) {
        if (value == null || value instanceof Boolean) {
            return String.valueOf(value);
        } else if (value instanceof Byte || value instanceof Short || value instanceof Integer || value instanceof Long) {
            return value.toString();
        } else if (value instanceof String text) {
            return quoted(text);
        } else if (value instanceof Float number) {
            return tagged("float", Float.floatToRawIntBits(number));
        } else if (value instanceof Double number) {
            return tagged("double", Double.doubleToRawLongBits(number));
        } else if (value instanceof BigDecimal number) {
            return tagged("decimal", quoted(number.toPlainString()));
        } else if (value instanceof byte[] bytes) {
            return tagged("bytes", quoted(HexFormat.of().formatHex(bytes)));
        } else if (value instanceof LocalDate day) {
            return tagged("day", day.toEpochDay());
        } else if (value instanceof LocalTime time) {
            return tagged("time", time.toNanoOfDay());
        } else if (value instanceof LocalDateTime moment) {
            return moment(moment.toInstant(ZoneOffset.UTC));
        } else if (value instanceof Instant instant) {
            return moment(instant);
        } else if (value instanceof Row row) {
            return tagged("row", fields(null, row));
        }
        return collection(value);
    }

    private static String collection(Object value) {
        StringJoiner parts = new StringJoiner(",", "[", "]");
        if (value instanceof Map<?, ?> map) {
            map.forEach((key, item) -> parts.add("[" + json(key) + "," + json(item) + "]"));
            return tagged("map", parts);
        }
        for (int at = 0; at < java.lang.reflect.Array.getLength(value); at++) {
            parts.add(json(java.lang.reflect.Array.get(value, at)));
        }
        return tagged("array", parts);
    }

    private static String moment(Instant instant) {
        return tagged("moment", "[" + instant.getEpochSecond() + "," + instant.getNano() + "]");
    }

    private static String tagged(String tag, Object value) {
        return "{\"" + tag + "\":" + value + "}";
    }

    private static String quoted(String text) {
        StringBuilder made = new StringBuilder("\"");
        for (char one : text.toCharArray()) {
            made.append(one < ' ' || one > '~' || one == '"' || one == '\\' ? String.format("\\u%04x", (int) one) : one);
        }
        return made.append('"').toString();
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
