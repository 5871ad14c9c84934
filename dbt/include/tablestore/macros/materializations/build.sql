{#-
  One build for every materialization that makes a table:

    config ──► hooks ──► contract ──► plan ──► write ──► target/run ──► docs, hooks
    (checked)            (checked)  (checked)  one snapshot, staged or published

  Python decides (dbt/adapters/tablestore/plan/build_plan.py), this prints and keeps dbt's order of things.
-#}
{%- macro tablestore_build() -%}
  {%- if model.language == 'python' -%}
    {%- do adapter.tablestore_check_python(model) -%}
  {%- endif -%}
  {#- 1 what is there, and what the model asks for; raises before anything is written -#}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set strategy_macro = tablestore_strategy_macro() -%}
  {%- set settings = adapter.tablestore_settings(model, tablestore_nodes(), strategy_macro is not none) -%}

  {#- 2 hooks outside and inside the transaction that does not exist -#}
  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {#- 3 header and contract, 4 plan; the rows of a Python model have a name, which its query reads -#}
  {%- if strategy_macro is not none and is_incremental() -%}
    {%- do tablestore_run_strategy(strategy_macro, target_relation, settings) -%}
    {{ return(tablestore_end_build(target_relation)) }}
  {%- endif -%}
  {%- set text = sql if model.language == 'sql' else adapter.tablestore_run_python(
        target_relation, settings, model, compiled_code,
        existing=existing, full_refresh=should_full_refresh(), compiled=tablestore_text_of_model(compiled_code)) -%}
  {%- set query = tablestore_model_query(text) -%}
  {#- a stream that on_configuration_change keeps as it is reads nothing, and says so -#}
  {%- if model.config.materialized == 'streaming' and not should_full_refresh()
        and adapter.tablestore_keeps_query(this, settings, tablestore_text_of_model(text), query) -%}
    {%- set told = "SKIPPED: its SQL is another than that of its rows, and on_configuration_change is 'continue'" -%}
    {%- do exceptions.warn(model.name ~ ": nothing was read. " ~ told ~ "; run it with --full-refresh") -%}
    {%- do store_raw_result('main', message=told, code='SKIPPED', rows_affected='0') -%}
    {{ return(tablestore_end_build(target_relation)) }}
  {%- endif -%}
  {%- set planned = adapter.tablestore_plan(
        target_relation, settings, query, existing=existing, full_refresh=should_full_refresh(),
        batch=model.get('batch'), event_time=config.get('event_time'), compiled=tablestore_text_of_model(text)) -%}

  {#- 5 one snapshot -#}
  {%- set response = adapter.tablestore_write(
        planned, existing=existing, nodes=tablestore_nodes(), selected=selected_resources, invocation=invocation_id,
        batch=model.get('batch')) -%}

  {#- 6 what a user could have typed, and the result line -#}
  {%- set statement_text = tablestore_statement(target_relation, settings, planned.plan) if model.language == 'sql' else compiled_code -%}
  {%- do tablestore_store_main(statement_text, response) -%}
  {{ return(tablestore_end_build(target_relation)) }}
{%- endmacro -%}


{#- The end of every materialization; of views, comments are in their statement. -#}
{%- macro tablestore_end_build(target_relation, for_relation=True, for_columns=True) -%}
  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
  {%- do persist_docs(target_relation, model, for_relation, for_columns) -%}
  {{ run_hooks(post_hooks, inside_transaction=True) }}
  {{ run_hooks(post_hooks, inside_transaction=False) }}
  {{ return({'relations': [target_relation]}) }}
{%- endmacro -%}


{%- materialization tablestore, adapter='tablestore', supported_languages=['sql', 'python'] -%}
  {{ return(tablestore_build()) }}
{%- endmaterialization -%}

{%- materialization incremental, adapter='tablestore', supported_languages=['sql', 'python'] -%}
  {{ return(tablestore_build()) }}
{%- endmaterialization -%}

{%- materialization table, adapter='tablestore', supported_languages=['sql', 'python'] -%}
  {{ return(tablestore_build()) }}
{%- endmaterialization -%}

{%- materialization streaming, adapter='tablestore', supported_languages=['sql', 'python'] -%}
  {{ return(tablestore_build()) }}
{%- endmaterialization -%}

{%- materialization materialized_view, adapter='tablestore', supported_languages=['sql', 'python'] -%}
  {#- a table by changed_keys -#}
  {{ return(tablestore_build()) }}
{%- endmaterialization -%}


{#- What the rows of a model that follows changes are made by: functions of its header as well. -#}
{%- macro tablestore_text_of_model(sql) -%}
  {%- set follows = model.config.materialized == 'streaming' or tablestore_follows_keys() -%}
  {%- set header = config.get('sql_header') if follows else none -%}
  {{- return(sql if header is none else header ~ '\n' ~ sql) -}}
{%- endmacro -%}


{#- The model's SQL as it goes to Spark: header first, columns in the contract's order. -#}
{%- macro tablestore_model_query(sql) -%}
  {%- set header = config.get('sql_header') -%}
  {%- if header is not none -%}
    {%- do run_query(header) -%}
  {%- endif -%}
  {%- if config.get('contract').enforced -%}
    {{- get_assert_columns_equivalent(sql) -}}
    {%- do adapter.render_raw_columns_constraints(raw_columns=model['columns']) -%}
    {{- return(get_select_subquery(sql)) -}}
  {%- endif -%}
  {{- return(sql) -}}
{%- endmacro -%}


{#- Result `main`: the text goes to target/run, the response to run_results.json and the log line. -#}
{%- macro tablestore_store_main(text, response) -%}
  {%- do write(text) -%}
  {%- do store_result('main', response=response, agate_table=none) -%}
{%- endmacro -%}


{%- macro tablestore_follows_keys() -%}
  {{- return(model.config.materialized == 'materialized_view' or model.config.get('incremental_strategy') == 'changed_keys') -}}
{%- endmacro -%}


{#- dbt's, and the table has been written: one that a killed run left without a snapshot is filled whole; one that each run
    replaces (keyless_models.py) is too. A changed_keys
    model is its full query: the branch for incremental runs would leave rows out, so it is not taken, with a warning. -#}
{%- macro is_incremental() -%}
  {%- if not execute -%}
    {{ return(False) }}
  {%- endif -%}
  {%- if tablestore_follows_keys() -%}
    {%- if model.language == 'sql' -%}{#- dbt asks for each Python model -#}
      {%- do adapter.tablestore_warn_is_incremental(model.name) -%}
    {%- endif -%}
    {{ return(False) }}
  {%- endif -%}
  {%- if model.resource_type == 'unit_test' -%}{#- what `given` says, not what the warehouse has; dbt puts a name for `this` -#}
    {{ return(this is string) }}
  {%- endif -%}
  {%- set relation = adapter.get_relation(this.database, this.schema, this.table) -%}
  {{ return(relation is not none
            and relation.type == 'table'
            and not should_full_refresh()
            and adapter.tablestore_adds_rows(relation, model)) }}
{%- endmacro -%}
