{#- For a target that another tool made, with another key: adds the source's new columns, and returns the MERGE. -#}
{%- macro tablestore_snapshot_merge(target_relation, names, rows) -%}
  {%- set present = adapter.get_columns_in_relation(target_relation) | map(attribute='name') | map('lower') | list -%}
  {%- set columns, added = [], [] -%}
  {%- for column in adapter.get_column_schema_from_query(get_empty_subquery_sql(rows)) -%}
    {%- do columns.append(column.quoted) -%}
    {%- if column.name | lower not in present -%}
      {%- do added.append(column) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- do alter_relation_add_remove_columns(target_relation, added, none) -%}
merge into {{ target_relation.render() }} as DBT_INTERNAL_DEST
using (
{{ rows }}
) as DBT_INTERNAL_SOURCE
on DBT_INTERNAL_SOURCE.{{ names.dbt_scd_id }} = DBT_INTERNAL_DEST.{{ names.dbt_scd_id }}
when matched then update set {{ names.dbt_valid_to }} = DBT_INTERNAL_SOURCE.{{ names.dbt_valid_to }}
when not matched then insert ({{ columns | join(', ') }})
  values (DBT_INTERNAL_SOURCE.{{ columns | join(', DBT_INTERNAL_SOURCE.') }})
{%- endmacro -%}
