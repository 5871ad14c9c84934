{#-
  A later run of an incremental model whose strategy is a macro of the project or of a package, get_incremental_NAME_sql.
  dbt's contract: the macro gets `target_relation`, `temp_relation` with the model's new rows, `unique_key`,
  `dest_columns` and `incremental_predicates`, and returns SQL that changes the target. Its statements are commits of
  their own, so nothing of them is staged; the temporary table is one of this warehouse, replaced by the next run.
-#}
{%- macro tablestore_strategy_macro() -%}
  {%- set strategy = config.get('incremental_strategy') -%}
  {%- if model.config.materialized not in ('incremental', 'tablestore') or strategy is none
         or strategy in adapter.valid_incremental_strategies() -%}
    {{- return(none) -}}
  {%- endif -%}
  {{- return(context.get('get_incremental_' ~ strategy ~ '_sql')) -}}
{%- endmacro -%}


{%- macro tablestore_run_strategy(strategy_macro, target_relation, settings) -%}
  {%- set query = tablestore_model_query(sql) -%}
  {%- do adapter.tablestore_check_in_place(
        target_relation, settings, query, nodes=tablestore_nodes(), selected=selected_resources, invocation=invocation_id) -%}
  {%- set temp_relation = target_relation.incorporate(path={'identifier': target_relation.identifier ~ '__dbt_tmp'}) -%}
  {%- do run_query('create or replace table ' ~ temp_relation ~ ' using tablestore as ' ~ query) -%}

  {%- set mode = incremental_validate_on_schema_change(config.get('on_schema_change'), default='ignore') -%}
  {%- set changed = process_schema_changes(mode, temp_relation, target_relation) -%}
  {%- set columns = changed if changed else adapter.get_columns_in_relation(target_relation) -%}
  {%- set statements = strategy_macro({
        'target_relation': target_relation, 'temp_relation': temp_relation, 'unique_key': config.get('unique_key'),
        'dest_columns': columns,
        'incremental_predicates': config.get('predicates', none) or config.get('incremental_predicates', none)}) -%}
  {%- call statement('main') -%}
    {{ statements }}
  {%- endcall -%}
  {%- do run_query('drop table if exists ' ~ temp_relation) -%}
{%- endmacro -%}
