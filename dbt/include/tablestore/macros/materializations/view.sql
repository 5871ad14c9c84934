{#- A view is text in the warehouse: create or replace is one step, a table of its name goes first. -#}
{%- materialization view, adapter='tablestore', supported_languages=['sql', 'python'] -%}
  {%- if model.language == 'python' -%}
    {%- do adapter.tablestore_check_python(model) -%}{#- refuses it -#}
  {%- endif -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='view') -%}

  {{ run_hooks(pre_hooks, inside_transaction=False) }}
  {{ run_hooks(pre_hooks, inside_transaction=True) }}

  {%- set statement_text = tablestore__create_view_as(target_relation, sql) -%}
  {%- if existing is not none and not existing.is_view -%}
    {%- do adapter.tablestore_check_view(target_relation, sql, full_refresh=should_full_refresh()) -%}{#- what could not be read must not cost the table -#}
    {%- do adapter.drop_relation(existing) -%}
  {%- endif -%}
  {%- call statement('main') -%}
    {{ statement_text }}
  {%- endcall -%}

  {{ return(tablestore_end_build(target_relation, for_relation=False, for_columns=False)) }}
{%- endmaterialization -%}


{%- macro tablestore__create_view_as(relation, sql) -%}
  {%- set header = config.get('sql_header') -%}
  {%- if header is not none -%}
    {%- do run_query(header) -%}
  {%- endif -%}
  {%- if config.get('contract').enforced -%}
    {{- get_assert_columns_equivalent(sql) -}}
  {%- endif -%}
create or replace view {{ relation.render() }}
{{- tablestore_view_columns(sql) }}
{%- if config.persist_relation_docs() and model.description %}
comment '{{ tablestore_escape(model.description) }}'
{%- endif %}
as
{{ sql }}
{%- endmacro -%}


{#- Column comments stand in the view's column list; only then the query's columns are asked for. -#}
{%- macro tablestore_view_columns(sql) -%}
  {%- if config.persist_column_docs() and model.columns -%}
    {%- set names = get_columns_in_query(sql) -%}
    {%- set documented = validate_doc_columns(this, model.columns, names) -%}
    {%- set comments = {} -%}
    {%- for name in documented -%}
      {%- do comments.update({name | lower: documented[name]['description']}) -%}
    {%- endfor %} (
    {%- for name in names %}
  {{ adapter.quote(name) }}
      {%- if comments.get(name | lower) %} comment '{{ tablestore_escape(comments[name | lower]) }}'{% endif -%}
      {{ ',' if not loop.last }}
    {%- endfor %}
)
  {%- endif -%}
{%- endmacro -%}
