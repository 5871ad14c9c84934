{#- One commit of `rows`, or of those of the keys that changes of the source affect (`restricted`, if not empty). -#}
{%- macro tablestore_snapshot_write(target_relation, settings, strategy, sql, rows, restricted, existing) -%}
  {%- set keys = tablestore_snapshot_keys(strategy.unique_key) -%}
  {%- set choices = [keys, strategy.hard_deletes, config.get('strategy'), config.get('check_cols'), config.get('updated_at')] -%}
  {{- return(adapter.tablestore_snapshot(
        target_relation, settings, rows, existing=existing, nodes=tablestore_nodes(), selected=selected_resources,
        invocation=invocation_id, source=sql, text=sql ~ tojson(choices), key=keys, view=tablestore_snapshot_view(),
        restricted=restricted)) -}}
{%- endmacro -%}


{#- The name of a temporary view of affected keys: of this node in this run. -#}
{%- macro tablestore_snapshot_view() -%}
  {{- return('tablestore_keys_' ~ local_md5(model.unique_id ~ invocation_id)) -}}
{%- endmacro -%}


{#-
  Whether a source row that is as it was in the run before gives no version: by dbt's own strategies, which compare it with
  the version that it made. With a column that the table lacks they take all rows for changed.
-#}
{%- macro tablestore_snapshot_can_follow(target_relation, strategy, sql) -%}
  {%- set own = {'check': dbt.snapshot_check_strategy, 'timestamp': dbt.snapshot_timestamp_strategy}[config.get('strategy')] -%}
  {%- if own is not defined or flags.EMPTY -%}
    {{- return(false) -}}
  {%- endif -%}
  {%- set theirs = own(model, 'snapshotted_data', 'source_data', model['config'], true) -%}
  {%- set stored = adapter.get_columns_in_relation(target_relation) | map(attribute='name') | list -%}
  {%- set given = adapter.get_column_schema_from_query(get_empty_subquery_sql(sql)) | map(attribute='name') | list -%}
  {{- return(theirs.row_changed == strategy.row_changed and not (given | reject('in', stored) | list)) -}}
{%- endmacro -%}
