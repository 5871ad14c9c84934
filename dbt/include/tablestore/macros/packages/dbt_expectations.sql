{#- What dbt_expectations leaves out for Spark: flags, and expressions with backslashes. Found with
    `dispatch: [{macro_namespace: dbt_expectations, search_order: [dbt, dbt_expectations]}]`. -#}

{% macro tablestore__regexp_instr(source_value, regexp, position, occurrence, is_raw, flags) %}
  {%- set pattern = ('(?' ~ flags ~ ')' if flags else '') ~ regexp -%}
  {%- set quote = '"' if "'" in pattern else "'" -%}
  {%- if is_raw and quote not in pattern -%}
    regexp_instr({{ source_value }}, r{{ quote }}{{ pattern }}{{ quote }})
  {%- elif is_raw -%}
    regexp_instr({{ source_value }}, '{{ pattern | replace("\\", "\\\\") | replace("'", "\\'") }}')
  {%- else -%}
    regexp_instr({{ source_value }}, '{{ pattern }}')
  {%- endif -%}
{% endmacro %}
