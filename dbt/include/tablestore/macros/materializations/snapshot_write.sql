{#- One commit of `rows`, or of those of the keys that changes of the source affect (`restricted`; none: it is not there). -#}
{%- macro tablestore_snapshot_write(target_relation, settings, strategy, sql, rows, restricted, existing) -%}
  {%- set keys = tablestore_snapshot_keys(strategy.unique_key) -%}
  {%- set choices = [keys, strategy.hard_deletes, config.get('strategy'), config.get('check_cols'), config.get('updated_at')] -%}
  {%- set follows = tablestore_snapshot_is_dbts() and not flags.EMPTY and (existing is none or restricted is not none) -%}
  {{- return(adapter.tablestore_snapshot(
        target_relation, settings, rows, existing=existing, nodes=tablestore_nodes(), selected=selected_resources,
        invocation=invocation_id, source=sql if follows else '', text=sql ~ tojson(choices), key=keys,
        view=tablestore_snapshot_view(), restricted=restricted or '')) -}}
{%- endmacro -%}


{#- The name of a temporary view of affected keys: of this node in this run. -#}
{%- macro tablestore_snapshot_view() -%}
  {{- return('tablestore_keys_' ~ local_md5(model.unique_id ~ invocation_id)) -}}
{%- endmacro -%}


{#-
  Whether the strategy is one of dbt's own two, which compare a source row with the version that it made: a row that is as
  it was in the run before gives no version. One of the project may decide otherwise.
-#}
{%- macro tablestore_snapshot_is_dbts() -%}
  {%- set name = 'snapshot_' ~ config.get('strategy') ~ '_strategy' -%}
  {{- return(config.get('strategy') in ('check', 'timestamp') and context[name] is sameas dbt[name]) -}}
{%- endmacro -%}
