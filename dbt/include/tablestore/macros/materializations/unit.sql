{#- dbt's unit test without its temporary table: types come from analysing the query. -#}
{%- materialization unit, adapter='tablestore' -%}
  {%- set expected_rows = config.get('expected_rows') -%}
  {%- set expected_sql = config.get('expected_sql') -%}
  {%- set types, quoted, order = {}, {}, [] -%}
  {%- for column in adapter.get_column_schema_from_query(get_empty_subquery_sql(sql)) -%}
    {%- do types.update({column.name | lower: column.data_type}) -%}
    {%- do quoted.update({column.name | lower: column.quoted}) -%}
    {%- do order.append(column.name) -%}
  {%- endfor -%}

  {%- set names = expected_rows[0].keys() if expected_rows | length > 0 else order -%}
  {%- set quoted_names = [] -%}
  {%- for name in names -%}
    {%- do quoted_names.append(quoted[name | lower]) -%}
  {%- endfor -%}
  {%- if not expected_sql -%}
    {%- set expected_sql = get_expected_sql(expected_rows, types, quoted) -%}
  {%- endif -%}

  {%- call statement('main', fetch_result=True) -%}
    {{ get_unit_test_sql(sql, expected_sql, quoted_names) }}
  {%- endcall -%}
  {{ return({'relations': []}) }}
{%- endmaterialization -%}
