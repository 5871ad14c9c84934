{#- NULL where the value is none of the type, in both modes of Spark: dbt-spark's plain cast raises in ANSI mode. -#}
{%- macro tablestore__safe_cast(field, type) -%}
  {{- spark__safe_cast(field, type) | replace('cast(', 'try_cast(', 1) -}}
{%- endmacro -%}
