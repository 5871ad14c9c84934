{#- The key is dbt_scd_id, the hash of a row's key and time: one row per version, which MERGE can then end. -#}
{%- macro tablestore_snapshot_create(target_relation, query) -%}
  {%- set names = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
create or replace table {{ target_relation.render() }}
using tablestore
tblproperties ('primary-key' = '{{ names.dbt_scd_id }}')
as
{{ query }}
{%- endmacro -%}


{#- Checks the target, adds the source's new columns, and returns the MERGE. -#}
{%- macro tablestore_snapshot_merge(target_relation, strategy, query) -%}
  {%- set names = config.get('snapshot_table_column_names') or get_snapshot_table_column_names() -%}
  {%- do adapter.assert_valid_snapshot_target_given_strategy(target_relation, names, strategy) -%}
  {%- set present = adapter.get_columns_in_relation(target_relation) | map(attribute='name') | map('lower') | list -%}
  {%- set columns, added = [], [] -%}
  {%- for column in adapter.get_column_schema_from_query(get_empty_subquery_sql(query)) -%}
    {%- set name = column.name | lower -%}
    {%- if name != 'dbt_change_type' and not name.startswith('dbt_unique_key') -%}
      {%- do columns.append(column.quoted) -%}
      {%- if name not in present -%}
        {%- do added.append(column) -%}
      {%- endif -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do alter_relation_add_remove_columns(target_relation, added, none) -%}
  {{- tablestore_snapshot_merge_text(target_relation, names, columns, query) -}}
{%- endmacro -%}


{%- macro tablestore_snapshot_merge_text(target_relation, names, columns, query) -%}
  {%- set open_end = "DBT_INTERNAL_DEST." ~ names.dbt_valid_to ~ " is null" -%}
  {%- if config.get('dbt_valid_to_current') -%}
    {%- set open_end = "(" ~ open_end ~ " or DBT_INTERNAL_DEST." ~ names.dbt_valid_to ~ " = "
        ~ config.get('dbt_valid_to_current') ~ ")" -%}
  {%- endif -%}
merge into {{ target_relation.render() }} as DBT_INTERNAL_DEST
using (
{{ query }}
) as DBT_INTERNAL_SOURCE
on DBT_INTERNAL_SOURCE.{{ names.dbt_scd_id }} = DBT_INTERNAL_DEST.{{ names.dbt_scd_id }}
when matched and {{ open_end }} and DBT_INTERNAL_SOURCE.dbt_change_type in ('update', 'delete')
  then update set {{ names.dbt_valid_to }} = DBT_INTERNAL_SOURCE.{{ names.dbt_valid_to }}
when not matched and DBT_INTERNAL_SOURCE.dbt_change_type = 'insert'
  then insert ({{ columns | join(', ') }})
  values (DBT_INTERNAL_SOURCE.{{ columns | join(', DBT_INTERNAL_SOURCE.') }})
{%- endmacro -%}
