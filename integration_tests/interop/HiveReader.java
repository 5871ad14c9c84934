import java.io.BufferedReader;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

import org.apache.hadoop.hive.common.type.Date;
import org.apache.hadoop.hive.common.type.HiveChar;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.common.type.HiveVarchar;
import org.apache.hadoop.hive.common.type.Timestamp;
import org.apache.hadoop.hive.common.type.TimestampTZ;
import org.apache.hadoop.hive.metastore.api.SerDeInfo;
import org.apache.hadoop.hive.metastore.api.StorageDescriptor;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.ql.lib.Node;
import org.apache.hadoop.hive.ql.metadata.HiveStorageHandler;
import org.apache.hadoop.hive.ql.parse.ASTNode;
import org.apache.hadoop.hive.ql.parse.ParseDriver;
import org.apache.hadoop.hive.ql.plan.TableDesc;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorUtils;
import org.apache.hadoop.hive.serde2.objectinspector.StructField;
import org.apache.hadoop.hive.serde2.objectinspector.StructObjectInspector;
import org.apache.hadoop.mapred.InputSplit;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.RecordReader;
import org.apache.hadoop.mapred.Reporter;
import org.apache.paimon.hive.PaimonSerDe;
import org.apache.paimon.hive.PaimonStorageHandler;
import org.apache.paimon.hive.RowDataContainer;
import org.apache.paimon.hive.mapred.PaimonInputFormat;

/**
 * What a task of Hive does to read a table: storage handler, input format and SerDe of Paimon's connector.
 *
 * <p>A line of input is the folder of a table, and after a tab a snapshot if it is not the newest; or "create", a
 * tab and a CREATE TABLE statement whose table is read then. The answer is one JSON array for each row
 * (java_values.py), or a JSON text, the error of this row; then "end", or a line "failed", a tab and the error.
 */
public final class HiveReader {
    private static final PrintStream OUT =
            new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);

    public static void main(String[] arguments) throws Exception {
        System.setOut(System.err);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        OUT.println("ready");
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            try {
                read(line.startsWith("create\t") ? create(line.split("\t")[1]) : line);
                OUT.println("end");
            } catch (Throwable failed) {
                failed.printStackTrace();
                OUT.println("failed\t" + String.valueOf(failed).replace('\n', ' '));
            }
        }
    }

    /** The location of a table, after Hive's parser and the hooks of the storage handler took the statement. */
    private static String create(String statement) throws Exception {
        ASTNode root = new ParseDriver().parse(statement);
        ASTNode tree = root.getToken() == null ? (ASTNode) root.getChild(0) : root;
        Map<String, String> texts = new HashMap<>();
        for (Node child : tree.getChildren()) {
            ASTNode one = (ASTNode) child;
            if (one.getChildCount() > 0) {
                texts.put(one.getText(), one.getChild(0).getText().replace("'", ""));
            }
        }
        StorageDescriptor storage = new StorageDescriptor();
        storage.setCols(new ArrayList<>());
        storage.setLocation(texts.get("TOK_TABLELOCATION"));
        storage.setSerdeInfo(new SerDeInfo());
        Table table = new Table();
        table.setDbName("default");
        table.setTableName(texts.get("TOK_TABNAME"));
        table.setTableType("EXTERNAL_TABLE");
        table.setSd(storage);
        table.setPartitionKeys(new ArrayList<>());
        table.setParameters(new HashMap<>());
        HiveStorageHandler handler =
                (HiveStorageHandler) Class.forName(texts.get("TOK_STORAGEHANDLER")).getConstructor().newInstance();
        handler.setConf(new JobConf());
        handler.getMetaHook().preCreateTable(table);
        handler.getMetaHook().commitCreateTable(table);
        return table.getSd().getLocation().replaceFirst("^file:", "");
    }

    private static void read(String line) throws Exception {
        String location = line.split("\t")[0];
        File folder = new File(location);
        Properties properties = new Properties();
        properties.setProperty("location", "file:" + location);
        properties.setProperty("name", folder.getParentFile().getName().replace(".db", "") + "." + folder.getName());
        JobConf job = new JobConf();
        if (line.contains("\t")) {
            job.set("paimon.scan.snapshot-id", line.split("\t")[1]); // SET paimon.scan.snapshot-id = 3;
        }
        PaimonSerDe serde = new PaimonSerDe();
        serde.initialize(job, properties);
        StructObjectInspector inspector = (StructObjectInspector) serde.getObjectInspector();
        List<? extends StructField> fields = inspector.getAllStructFieldRefs();
        // Hive names the columns that it wants; without them the connector gives rows of NULLs
        job.set("mapreduce.input.fileinputformat.inputdir", "file:" + location);
        job.set("hive.io.file.read.all.columns", "false");
        job.set("hive.io.file.readcolumn.names", names(fields));
        job.set("hive.io.file.readcolumn.ids", ids(fields.size()));
        Map<String, String> more = new HashMap<>();
        PaimonStorageHandler handler = new PaimonStorageHandler();
        handler.setConf(job);
        handler.configureInputJobProperties(new TableDesc(PaimonInputFormat.class, null, properties), more);
        more.forEach(job::set);
        PaimonInputFormat format = new PaimonInputFormat();
        for (InputSplit split : format.getSplits(job, 1)) {
            RecordReader<Void, RowDataContainer> reader = format.getRecordReader(split, job, Reporter.NULL);
            RowDataContainer row = reader.createValue();
            while (reader.next(null, row)) {
                OUT.println(rowOrError(inspector, fields, serde, row));
            }
            reader.close();
        }
    }

    /** A row whose values the connector cannot show is a JSON text: the others of the table are still compared. */
    private static String rowOrError(
            StructObjectInspector inspector, List<? extends StructField> fields, PaimonSerDe serde, RowDataContainer row) {
        try {
            return row(inspector, fields, serde.deserialize(row));
        } catch (Exception failed) {
            return quoted(String.valueOf(failed));
        }
    }

    private static String names(List<? extends StructField> fields) {
        return fields.stream().map(StructField::getFieldName).collect(Collectors.joining(","));
    }

    private static String ids(int count) {
        return IntStream.range(0, count).mapToObj(String::valueOf).collect(Collectors.joining(","));
    }

    private static String row(StructObjectInspector inspector, List<? extends StructField> fields, Object row) {
        List<String> values = new ArrayList<>();
        for (StructField field : fields) {
            ObjectInspector of = field.getFieldObjectInspector();
            values.add(json(ObjectInspectorUtils.copyToStandardJavaObject(inspector.getStructFieldData(row, field), of)));
        }
        return "[" + String.join(",", values) + "]";
    }

    private static String json(Object value) {
        if (value == null || value instanceof Boolean || value instanceof Byte || value instanceof Short
                || value instanceof Integer || value instanceof Long) {
            return String.valueOf(value);
        } else if (value instanceof String text) {
            return quoted(text);
        } else if (value instanceof HiveChar text) {
            return quoted(text.getStrippedValue().toString());
        } else if (value instanceof HiveVarchar text) {
            return quoted(text.getValue());
        } else if (value instanceof Float number) {
            return tagged("float", Float.floatToRawIntBits(number));
        } else if (value instanceof Double number) {
            return tagged("double", Double.doubleToRawLongBits(number));
        } else if (value instanceof HiveDecimal number) {
            BigDecimal decimal = number.bigDecimalValue();
            return tagged("decimal", quoted(decimal.toPlainString()));
        } else if (value instanceof byte[] bytes) {
            return tagged("bytes", quoted(HexFormat.of().formatHex(bytes)));
        } else if (value instanceof Date day) {
            return tagged("day", day.toEpochDay());
        } else if (value instanceof Timestamp moment) {
            return tagged("moment", "[" + moment.toEpochSecond() + "," + moment.getNanos() + "]");
        } else if (value instanceof TimestampTZ moment) {
            return tagged("moment", "[" + moment.getEpochSecond() + "," + moment.getNanos() + "]");
        } else if (value instanceof Map<?, ?> map) {
            return tagged("map", map.entrySet().stream()
                    .map(one -> "[" + json(one.getKey()) + "," + json(one.getValue()) + "]")
                    .collect(Collectors.joining(",", "[", "]")));
        } else if (value instanceof List<?> list) {
            return tagged("array", list.stream().map(HiveReader::json).collect(Collectors.joining(",", "[", "]")));
        }
        throw new IllegalArgumentException("a value of " + value.getClass());
    }

    private static String quoted(String text) {
        StringBuilder made = new StringBuilder("\"");
        for (char one : text.toCharArray()) {
            made.append(one < ' ' || one == '"' || one == '\\' || one > '~' ? String.format("\\u%04x", (int) one) : one);
        }
        return made.append('"').toString();
    }

    private static String tagged(String tag, Object value) {
        return "{\"" + tag + "\":" + value + "}";
    }
}
