{#- Comments of tables: already in the schema when the table was made; later changes go through the catalog. -#}
{%- macro tablestore__persist_docs(relation, model, for_relation, for_columns) -%}
  {%- set comment = none -%}
  {%- set columns = {} -%}
  {%- if for_relation and config.persist_relation_docs() and model.description -%}
    {%- set comment = model.description -%}
  {%- endif -%}
  {%- if for_columns and config.persist_column_docs() and model.columns -%}
    {%- set names = adapter.get_columns_in_relation(relation) | map(attribute='name') | list -%}
    {%- set documented = validate_doc_columns(relation, model.columns, names) -%}
    {%- for name in documented -%}
      {%- if documented[name]['description'] -%}
        {%- do columns.update({name: documented[name]['description']}) -%}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
  {%- if comment is not none or columns -%}
    {%- do adapter.tablestore_comment(relation, comment, columns) -%}
  {%- endif -%}
{%- endmacro -%}

{%- macro tablestore__alter_relation_comment(relation, relation_comment) -%}
  {%- do adapter.tablestore_comment(relation, relation_comment, {}) -%}
{%- endmacro -%}

{%- macro tablestore__alter_column_comment(relation, column_dict) -%}
  {%- set columns = {} -%}
  {%- for name in column_dict -%}
    {%- do columns.update({name: column_dict[name]['description']}) -%}
  {%- endfor -%}
  {%- do adapter.tablestore_comment(relation, none, columns) -%}
{%- endmacro -%}
