{#- Statements that dbt's own macros send; the engine's router understands them. -#}
{%- macro tablestore__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if temporary -%}
    {{ create_temporary_view(relation, compiled_code) }}
  {%- else -%}
    create or replace table {{ relation.render() }} using tablestore as
    {{ compiled_code }}
  {%- endif -%}
{%- endmacro -%}

{%- macro tablestore__rename_relation(from_relation, to_relation) -%}
  {%- call statement('rename_relation') -%}
    alter {{ from_relation.type or 'table' }} {{ from_relation.render() }} rename to {{ to_relation.render() }}
  {%- endcall -%}
{%- endmacro -%}

{%- macro tablestore__create_schema(relation) -%}
  {%- call statement('create_schema') -%}
    create schema if not exists {{ adapter.quote(relation.schema) }}
  {%- endcall -%}
{%- endmacro -%}

{%- macro tablestore__drop_schema(relation) -%}
  {%- call statement('drop_schema') -%}
    drop schema if exists {{ adapter.quote(relation.schema) }} cascade
  {%- endcall -%}
{%- endmacro -%}

{%- macro tablestore__alter_column_type(relation, column_name, new_column_type) -%}
  {%- call statement('alter_column_type') -%}
    alter table {{ relation.render() }} alter column {{ adapter.quote(column_name) }} type {{ new_column_type }}
  {%- endcall -%}
{%- endmacro -%}

{%- macro tablestore__alter_relation_add_remove_columns(relation, add_columns, remove_columns) -%}
  {%- if add_columns -%}
    {%- call statement('add_columns') -%}
      alter table {{ relation.render() }} add columns (
        {%- for column in add_columns -%}
          {{ column.quoted }} {{ column.data_type }}{{ ', ' if not loop.last }}
        {%- endfor -%}
      )
    {%- endcall -%}
  {%- endif -%}
  {%- if remove_columns -%}
    {%- call statement('drop_columns') -%}
      alter table {{ relation.render() }} drop columns ({{ remove_columns | map(attribute='quoted') | join(', ') }})
    {%- endcall -%}
  {%- endif -%}
{%- endmacro -%}
