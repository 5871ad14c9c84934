import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Scanner;

import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.DeploymentOptions;
import org.apache.flink.configuration.RestOptions;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Runs SQL scripts on one local Flink cluster: a path per line in, the rows of the last query out.
 *
 * <p>A row is a line with its kind and its fields, separated by tabs. A script ends with a line "end", or with "failed"
 * and the reason.
 */
public final class FlinkSqlRunner {
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
                    run(Files.readString(Path.of(scripts.nextLine())), settings);
                    say("end");
                } catch (Exception failed) {
                    failed.printStackTrace();
                    say("failed\t" + failed);
                }
            }
        }
    }

    private static void run(String script, Configuration settings) throws Exception {
        EnvironmentSettings streaming =
                EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(settings).build();
        TableEnvironment tables = TableEnvironment.create(streaming);
        tables.getConfig().set("parallelism.default", "2");
        TableResult last = null;
        for (String statement : script.split(";\\s*\n")) {
            if (!statement.isBlank()) {
                last = tables.executeSql(statement);
            }
        }
        if (last == null) {
            return;
        }
        try (CloseableIterator<Row> rows = last.collect()) {
            while (rows.hasNext()) {
                Row row = rows.next();
                StringBuilder line = new StringBuilder(row.getKind().shortString());
                for (int field = 0; field < row.getArity(); field++) {
                    line.append('\t').append(row.getField(field));
                }
                say(line.toString());
            }
        }
    }

    private static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
