{#- What audit_helper lacks for Spark. Found with
    `dispatch: [{macro_namespace: audit_helper, search_order: [dbt, audit_helper]}]`. -#}

{#- Spark has no count(distinct …) over a window: the ranks of a pair from both ends meet at the number of pairs. -#}
{% macro tablestore___count_num_rows_in_status() %}
  {%- set pair = ['dbt_audit_surrogate_key', 'dbt_audit_pk_row_num'] -%}
  {%- for order in ['asc', 'desc'] -%}
    dense_rank() over (
      partition by dbt_audit_row_status
      order by {% for column in pair %}{{ column }} {{ order }}{{ ', ' if not loop.last }}{% endfor %}
    ) {{ '+' if loop.first else '- 1' }}
  {% endfor -%}
{% endmacro %}

{#- Exact, rows that are there several times too; others compare one hash of all rows. -#}
{% macro tablestore__quick_are_queries_identical(query_a, query_b, columns, event_time) %}
  {%- set bounds = audit_helper._get_comparison_bounds(query_a, query_b, event_time) if event_time else none -%}
  {%- set names = columns | join(', ') -%}
  with query_a as (
    select {{ names }} from ({{ query_a }}) {{ audit_helper.event_time_filter(bounds) }}
  ), query_b as (
    select {{ names }} from ({{ query_b }}) {{ audit_helper.event_time_filter(bounds) }}
  )
  select count(*) = 0 as are_tables_identical from (
    (select * from query_a except all select * from query_b)
    union all
    (select * from query_b except all select * from query_a)
  )
{% endmacro %}
