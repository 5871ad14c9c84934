{#-
  dbt's unit test without its temporary table: types come from analysing the query. With `result: table` or `changelog`
  under meta.tablestore the rows of `expect` are those of the table after the model's write, or of what changed in it.
-#}
{%- materialization unit, adapter='tablestore' -%}
  {%- set expected_rows = config.get('expected_rows') -%}
  {%- set expected_sql = config.get('expected_sql') -%}
  {%- set asked = adapter.tablestore_unit_test(model) -%}
  {%- set types, quoted, order = {}, {}, [] -%}
  {%- for column in adapter.get_column_schema_from_query(get_empty_subquery_sql(sql)) -%}
    {%- do types.update({column.name | lower: column.data_type}) -%}
    {%- do quoted.update({column.name | lower: column.quoted}) -%}
    {%- do order.append(column.name) -%}
  {%- endfor -%}
  {%- set prior = tablestore_prior_rows(asked.prior, order, types, quoted) if asked.result != 'query' else none -%}
  {%- if asked.result == 'changelog' -%}
    {%- do types.update({'_row_kind': 'string'}) -%}
    {%- do quoted.update({'_row_kind': '_row_kind'}) -%}
    {%- do order.insert(0, '_row_kind') -%}
  {%- endif -%}

  {%- set names = expected_rows[0].keys() if expected_rows | length > 0 else order -%}
  {%- set quoted_names = [] -%}
  {%- for name in names -%}
    {%- do quoted_names.append(quoted[name | lower]) -%}
  {%- endfor -%}
  {%- if not expected_sql -%}
    {%- set expected_sql = get_expected_sql(expected_rows, types, quoted) -%}
  {%- endif -%}

  {%- if asked.result == 'query' -%}
    {%- call statement('main', fetch_result=True) -%}
      {{ get_unit_test_sql(sql, expected_sql, quoted_names) }}
    {%- endcall -%}
  {%- else -%}
    {%- set schema, actual = adapter.tablestore_unit_result(asked) -%}
    {%- set compared = get_unit_test_sql("select * from " ~ actual, expected_sql, quoted_names) -%}
    {%- set table = adapter.tablestore_unit_rows(asked, schema, prior, sql, compared) -%}
    {%- do store_raw_result('main', message='OK', code='OK', rows_affected='0', agate_table=table) -%}
  {%- endif -%}
  {{ return({'relations': []}) }}
{%- endmaterialization -%}


{#- SQL of what the table holds before; a column that a row does not give is null. -#}
{%- macro tablestore_prior_rows(rows, order, types, quoted) -%}
  {%- if rows is none or rows is string -%}
    {{- return(rows) -}}
  {%- endif -%}
  {%- set whole = [] -%}
  {%- for row in rows -%}
    {%- set given, filled = {}, {} -%}
    {%- for name, value in row.items() -%}
      {%- do given.update({name | lower: value}) -%}
    {%- endfor -%}
    {%- for name in order -%}
      {%- do filled.update({name: given.get(name | lower)}) -%}
    {%- endfor -%}
    {%- for name in given if name not in types -%}
      {%- do exceptions.raise_compiler_error("column " ~ name ~ " of `this` is not in the model: " ~ order | join(', ')) -%}
    {%- endfor -%}
    {%- do whole.append(filled) -%}
  {%- endfor -%}
  {%- if whole | length == 0 -%}
    {{- return("select * from (" ~ get_expected_sql([dict.fromkeys(order)], types, quoted) ~ ") where false") -}}
  {%- endif -%}
  {{- return(get_expected_sql(whole, types, quoted)) -}}
{%- endmacro -%}


{#-
  Rows of an input. dbt takes their types from the table that they stand for. A model that has not been built yet is none,
  but a test of its table needs rows of it: then types are those of the values, and the write casts them.
-#}
{%- macro get_fixture_sql(rows, column_name_to_data_types) -%}
  {%- set types, quoted = column_name_to_data_types or {}, {} -%}
  {%- if not types -%}
    {%- set known = defer_relation if (defer_relation and not load_relation(this)) else this -%}
    {%- for column in adapter.get_columns_in_relation(known) -%}
      {%- do types.update({column.name | lower: column.data_type}) -%}
      {%- do quoted.update({column.name | lower: column.quoted}) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- if not types and not adapter.tablestore_is_tested(model) -%}
    {%- do exceptions.raise_compiler_error(
          "Not able to get columns for unit test '" ~ model.name ~ "' from relation " ~ this
          ~ " because the relation doesn't exist; build it once, for example with `dbt run --empty`") -%}
  {%- endif -%}
  {%- set names = (types if types else (rows[0] if rows else {})).keys() | list -%}
  {%- do validate_fixture_rows(rows, none) -%}
  {%- set selects = [] -%}
  {%- for row in (rows if rows else [{}]) -%}
    {%- set given = tablestore_fixture_row(row, types) if types else tablestore_untyped_row(row) -%}
    {%- set values = [] -%}
    {%- for name in names -%}
      {%- set nothing = safe_cast("null", types[name]) | trim if types else "null" -%}
      {%- do values.append(given.get(name, nothing) ~ " as " ~ quoted.get(name, adapter.quote(name))) -%}
    {%- endfor -%}
    {%- do selects.append("select " ~ (values | join(", ") if values else "1")) -%}
  {%- endfor -%}
  {{- return(selects | join("\nunion all\n") ~ ("" if rows else "\nlimit 0")) -}}
{%- endmacro -%}


{#- dbt's rows of an expectation, with values that must fit their types. -#}
{%- macro get_expected_sql(rows, column_name_to_data_types, column_name_to_quoted) -%}
  {%- set selects = [] -%}
  {%- for row in rows -%}
    {%- set values = [] -%}
    {%- for name, value in tablestore_fixture_row(row, column_name_to_data_types).items() -%}
      {%- do values.append(value ~ " as " ~ column_name_to_quoted[name]) -%}
    {%- endfor -%}
    {%- do selects.append("select " ~ (values | join(", "))) -%}
  {%- endfor -%}
  {{- return(selects | join("\nunion all\n") if rows else "select * from dbt_internal_unit_test_actual\nlimit 0") -}}
{%- endmacro -%}


{#- dbt casts by safe_cast: a value that does not fit would be NULL. -#}
{%- macro tablestore_fixture_row(row, types) -%}
  {%- set made = format_row(row, types) -%}
  {%- for name, value in made.items() -%}
    {%- do made.update({name: value | trim | replace('try_cast(', 'cast(', 1)}) -%}
  {%- endfor -%}
  {{- return(made) -}}
{%- endmacro -%}


{%- macro tablestore_untyped_row(row) -%}
  {%- set made = {} -%}
  {%- for name, value in row.items() -%}
    {%- set text = "null" if value is none else (string_literal(value) if value is string else value | string) -%}
    {%- do made.update({name: text}) -%}
  {%- endfor -%}
  {{- return(made) -}}
{%- endmacro -%}
