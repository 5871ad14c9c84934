{#- Source freshness from the time of the last commit: no query runs. -#}
{%- macro tablestore__get_relation_last_modified(information_schema, relations) -%}
  {%- call statement('last_modified', fetch_result=True) -%}
    {%- for schema, identifier, committed_ms in adapter.tablestore_last_modified(relations) -%}
    select '{{ schema }}' as schema, '{{ identifier }}' as identifier,
      {{ 'cast(null as timestamp)' if committed_ms is none else 'timestamp_millis(' ~ committed_ms ~ ')' }} as last_modified,
      {{ current_timestamp() }} as snapshotted_at
    {{- ' union all ' if not loop.last }}
    {%- endfor -%}
  {%- endcall -%}
  {{ return(load_result('last_modified')) }}
{%- endmacro -%}

{#- Columns as objects, as dbt's own macros expect them; dbt-spark's macro gives rows of DESCRIBE. -#}
{%- macro tablestore__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro -%}

{#- Names of a query's columns: Spark analyses the query. dbt's own macro runs it with `where false`, a Spark job for each call. -#}
{%- macro tablestore__get_columns_in_query(select_sql) -%}
  {%- set columns = adapter.get_column_schema_from_query(get_empty_subquery_sql(select_sql)) -%}
  {{ return(columns | map(attribute='name') | list) }}
{%- endmacro -%}
