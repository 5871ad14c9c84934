{#- A seed is one snapshot of its CSV: values go as Arrow, never as SQL text. -#}
{%- materialization seed, adapter='tablestore' -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- if existing is not none and existing.is_view -%}
    {{ exceptions.raise_compiler_error("Cannot seed to '{}', it is a view".format(existing.render())) }}
  {%- endif -%}
  {%- set settings = adapter.tablestore_settings(model, tablestore_nodes()) -%}
  {%- do adapter.tablestore_read_decimals_exactly() -%}
  {%- set agate_table = load_agate_table() -%}
  {%- do store_result('agate_table', response='OK', agate_table=agate_table) -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set response = adapter.tablestore_seed(
        target_relation, settings, agate_table, column_types=config.get('column_types', {}),
        quote_columns=config.get('quote_columns', false), existing=existing,
        nodes=tablestore_nodes(), selected=selected_resources, invocation=invocation_id) -%}
  {%- set rows = agate_table.rows | length -%}
  {%- do tablestore_store_main('-- dbt seed: ' ~ rows ~ ' rows into ' ~ target_relation.render(), response) -%}

  {{ return(tablestore_end_build(target_relation)) }}
{%- endmaterialization -%}
