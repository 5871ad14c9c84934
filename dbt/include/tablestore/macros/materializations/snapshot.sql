{#-
  dbt snapshots (history by valid_from / valid_to) on any table of the warehouse.
  The first run makes a table whose key is dbt's id of a version; later ones are one MERGE of dbt's own staging query, so one snapshot:
  new versions are inserted, ended ones get only their dbt_valid_to.
-#}
{%- materialization snapshot, adapter='tablestore' -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- if existing is not none and not existing.is_table -%}
    {%- do exceptions.relation_wrong_type(existing, 'table') -%}
  {%- endif -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set strategy = strategy_dispatch(config.get('strategy'))(
        model, 'snapshotted_data', 'source_data', model['config'], existing is not none) -%}
  {%- if existing is none -%}
    {%- set query = build_snapshot_table(strategy, model['compiled_code']) -%}
    {%- set statement_text = tablestore_snapshot_create(target_relation, query) -%}
  {%- else -%}
    {%- set query = snapshot_staging_table(strategy, sql, target_relation) -%}
    {%- set statement_text = tablestore_snapshot_merge(target_relation, strategy, query) -%}
  {%- endif -%}
  {{ check_time_data_types(query) }}
  {%- call statement('main') -%}
    {{ statement_text }}
  {%- endcall -%}

  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
  {%- do persist_docs(target_relation, model) -%}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target_relation]}) }}
{%- endmaterialization -%}
