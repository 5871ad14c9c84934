{#-
  dbt snapshots (history by valid_from / valid_to) on any table of the warehouse.
  The first run makes a table whose key is dbt's id of a version; later ones upsert the versions that begin and end, so
  each run is one snapshot, and a run without changes is none. It is staged when it reads staged rows of this build.
-#}
{%- materialization snapshot, adapter='tablestore' -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- if existing is not none and not existing.is_table -%}
    {%- do exceptions.relation_wrong_type(existing, 'table') -%}
  {%- endif -%}
  {%- set names = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- set settings = adapter.tablestore_settings(model, tablestore_nodes()) -%}
  {%- do tablestore_set_snapshot_time(existing, names) -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set strategy = strategy_dispatch(config.get('strategy'))(
        model, 'snapshotted_data', 'source_data', model['config'], existing is not none) -%}
  {%- if existing is none -%}
    {%- set query = tablestore_snapshot_first_rows(strategy, model['compiled_code']) -%}
    {{ check_time_data_types(query) }}
    {%- set response = tablestore_snapshot_write(
          target_relation, settings, strategy, model['compiled_code'], query, none, existing=none) -%}
    {%- do tablestore_store_main(tablestore_create(target_relation, settings, query), response) -%}
  {%- else -%}
    {%- do tablestore_snapshot_continue(target_relation, settings, names, strategy, sql) -%}
  {%- endif -%}

  {{ return(tablestore_end_build(target_relation)) }}
{%- endmaterialization -%}


{#- A later run: the target is checked, then changed in one commit. -#}
{%- macro tablestore_snapshot_continue(target_relation, settings, names, strategy, sql) -%}
  {%- do adapter.assert_valid_snapshot_target_given_strategy(target_relation, names, strategy) -%}
  {{ check_time_data_types('select ' ~ strategy.updated_at ~ ' as dbt_updated_at from (\n' ~ sql ~ '\n)') }}
  {%- set old, new = {}, {} -%}
  {%- for column in adapter.get_columns_in_relation(target_relation) -%}
    {%- do old.update({column.name | lower: column}) -%}
  {%- endfor -%}
  {%- for column in adapter.get_column_schema_from_query(get_empty_subquery_sql(sql)) -%}
    {%- do new.update({column.name | lower: column}) -%}
  {%- endfor -%}
  {%- set rows = tablestore_snapshot_rows(target_relation, names, strategy, sql, old, new) -%}
  {%- if adapter.tablestore_has_key(target_relation, [names.dbt_scd_id]) -%}
    {#- not followed: --empty; and a column that the table lacks, for which dbt's strategies take all rows for changed -#}
    {%- set added = new.values() | map(attribute='name') | reject('in', old.values() | map(attribute='name') | list) | list -%}
    {%- set restricted = tablestore_snapshot_rows(
          target_relation, names, strategy, sql, old, new, tablestore_snapshot_view()) if not (added or flags.EMPTY) else none -%}
    {%- set response = tablestore_snapshot_write(
          target_relation, settings, strategy, sql, rows, restricted, existing=target_relation) -%}
    {%- do tablestore_store_main('insert into ' ~ target_relation.render() ~ '\n' ~ rows, response) -%}
  {%- else -%}
    {%- do adapter.tablestore_check_in_place(
          target_relation, settings, rows, nodes=tablestore_nodes(), selected=selected_resources,
          invocation=invocation_id) -%}
    {%- set merge = tablestore_snapshot_merge(target_relation, names, rows) -%}
    {%- call statement('main') -%}
      {{ merge }}
    {%- endcall -%}
  {%- endif -%}
{%- endmacro -%}

