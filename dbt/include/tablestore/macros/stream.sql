{#-
  `{{ stream(ref('orders')) }}` in a model with materialized='streaming': what came behind the model's last commit, with
  `_row_kind` and `_snapshot_id`; all rows, as +I, the first time. What it has read is kept in the model's own snapshot.
-#}
{%- macro stream(relation) -%}
  {%- if not execute or relation.is_cte -%} {#- the rows of a unit test are what came #}
    {{- return(relation) -}}
  {%- endif -%}
  {{- return(adapter.tablestore_stream(relation, target=this, model=model)) -}}
{%- endmacro -%}
