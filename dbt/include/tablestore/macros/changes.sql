{#-
  `{{ changes(ref('orders')) }}`: the rows of a table that changed since this model's last commit, with `_row_kind` and
  `_snapshot_id`; all of them, as +I, the first time. What it has read is kept in the model's own snapshot.
-#}
{%- macro changes(relation) -%}
  {%- if not execute or model.resource_type == 'unit_test' -%} {#- the rows of a unit test are what changed #}
    {{- return(relation) -}}
  {%- endif -%}
  {{- return(adapter.tablestore_changes(relation, target=this, model=model, full_refresh=should_full_refresh())) -}}
{%- endmacro -%}
