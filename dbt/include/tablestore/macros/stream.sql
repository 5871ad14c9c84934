{#-
  `{{ stream(ref('orders')) }}` in a model with materialized='streaming': what came behind the model's last commit, with
  `_row_kind` and `_snapshot_id`; all rows, as +I, the first time. What it has read is kept in the model's own snapshot. `dbt compile`
  says who runs the query, and refuses what cannot be kept up.
-#}
{%- macro stream(relation) -%}
  {%- if not execute or model.resource_type == 'unit_test' -%} {#- the rows of a unit test are what came #}
    {{- return(relation) -}}
  {%- endif -%}
  {%- set explained = render if flags.WHICH == 'compile' else none -%}
  {{- return(adapter.tablestore_stream(relation, target=this, model=model, nodes=tablestore_nodes(), explained=explained)) -}}
{%- endmacro -%}
