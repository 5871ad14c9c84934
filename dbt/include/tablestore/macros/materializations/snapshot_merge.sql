{#-
  A later run of a dbt snapshot: dbt's staging query says which versions begin and end, the table's key is dbt_scd_id, the
  hash of a row's key and time. So one SELECT gives the rows to upsert, and no rows are no commit.
-#}
{%- macro tablestore_snapshot_create(target_relation, names, query) -%}
create or replace table {{ target_relation.render() }}
using tablestore
tblproperties ('primary-key' = '{{ names.dbt_scd_id }}')
as
{{ query }}
{%- endmacro -%}


{#- Columns of the staging query that belong into the table. -#}
{%- macro tablestore_snapshot_columns(query) -%}
  {%- set columns = [] -%}
  {%- for column in adapter.get_column_schema_from_query(get_empty_subquery_sql(query)) -%}
    {%- if column.name | lower != 'dbt_change_type' and not (column.name | lower).startswith('dbt_unique_key') -%}
      {%- do columns.append(column) -%}
    {%- endif -%}
  {%- endfor -%}
  {{- return(columns) -}}
{%- endmacro -%}


{#- Whether a version of the table is the current one of its row. -#}
{%- macro tablestore_snapshot_is_open(names) -%}
  {%- set valid_to = "DBT_INTERNAL_DEST." ~ names.dbt_valid_to -%}
  {%- if config.get('dbt_valid_to_current') -%}
    {{- "(" ~ valid_to ~ " is null or " ~ valid_to ~ " = " ~ config.get('dbt_valid_to_current') ~ ")" -}}
  {%- else -%}
    {{- valid_to ~ " is null" -}}
  {%- endif -%}
{%- endmacro -%}


{#-
  The rows to upsert: new versions, ended versions with all their values, and rows that return as they left. Those have the
  id of the version that ended; they become a version of their own that begins now.
-#}
{%- macro tablestore_snapshot_rows(target_relation, names, query) -%}
  {%- set old = {} -%}
  {%- for column in adapter.get_columns_in_relation(target_relation) -%}
    {%- do old.update({column.name | lower: column}) -%}
  {%- endfor -%}
  {%- set new, order = {}, [] -%}
  {%- for column in tablestore_snapshot_columns(query) -%}
    {%- do new.update({column.name | lower: column}) -%}
  {%- endfor -%}
  {%- do order.extend(old.keys()) -%}
  {%- for name in new if name not in old -%}
    {%- do order.append(name) -%}
  {%- endfor -%}
  {%- set scd_id = names.dbt_scd_id | lower -%}
  {%- set begin, end = names.dbt_valid_from | lower, names.dbt_valid_to | lower -%}
  {%- set times = [begin, end, names.dbt_updated_at | lower] -%}
  {%- set now = snapshot_get_time() | trim -%}
select
{%- for name in order %}
  {%- set ours = "DBT_INTERNAL_DEST." ~ old[name].quoted if name in old else "null" -%}
  {%- set theirs = "DBT_INTERNAL_SOURCE." ~ new[name].quoted if name in new else "null" -%}
  {%- set quoted = (old[name] if name in old else new[name]).quoted %}
  {#- dbt's own times take the table's type: the moment of a deletion is a timestamp, updated_at may be a date -#}
  {%- set type = old[name].dtype if name in times and name in old else none %}
  {{ 'cast(' if type }}case
    when not is_begin then
      {%- if name == end %} if({{ theirs }} < DBT_INTERNAL_DEST.{{ names.dbt_valid_from }}, {{ now }}, {{ theirs }})
      {%- else %} {{ ours }}{% endif %}
    {%- if name == scd_id %}
    when returns then {{ snapshot_hash_arguments([theirs, snapshot_get_time()]) }}
    {%- elif name == begin %}
    when returns then {{ now }}
    {%- endif %}
    else {{ theirs }}
  end{{ ' as ' ~ type ~ ')' if type }} as {{ quoted }}{{ ',' if not loop.last }}
{%- endfor %}
from (
  select struct(DBT_INTERNAL_SOURCE.*) as DBT_INTERNAL_SOURCE, struct(DBT_INTERNAL_DEST.*) as DBT_INTERNAL_DEST,
    DBT_INTERNAL_SOURCE.dbt_change_type = 'insert' as is_begin,
    DBT_INTERNAL_DEST.{{ names.dbt_scd_id }} is not null as returns,
    {{ tablestore_snapshot_is_open(names) }} as is_open
  from (
{{ query }}
  ) as DBT_INTERNAL_SOURCE
  left join {{ target_relation.render() }} as DBT_INTERNAL_DEST
    on DBT_INTERNAL_SOURCE.{{ names.dbt_scd_id }} = DBT_INTERNAL_DEST.{{ names.dbt_scd_id }}
)
where if(is_begin, not (returns and is_open), returns and is_open)
{%- endmacro -%}


{#- For a target that another tool made, with another key: adds the source's new columns, and returns the MERGE. -#}
{%- macro tablestore_snapshot_merge(target_relation, names, query) -%}
  {%- set present = adapter.get_columns_in_relation(target_relation) | map(attribute='name') | map('lower') | list -%}
  {%- set staged = tablestore_snapshot_columns(query) -%}
  {%- set columns, added = staged | map(attribute='quoted') | list, [] -%}
  {%- for column in staged if column.name | lower not in present -%}
    {%- do added.append(column) -%}
  {%- endfor -%}
  {%- do alter_relation_add_remove_columns(target_relation, added, none) -%}
  {{- tablestore_snapshot_merge_text(target_relation, names, columns, query) -}}
{%- endmacro -%}


{%- macro tablestore_snapshot_merge_text(target_relation, names, columns, query) -%}
merge into {{ target_relation.render() }} as DBT_INTERNAL_DEST
using (
{{ query }}
) as DBT_INTERNAL_SOURCE
on DBT_INTERNAL_SOURCE.{{ names.dbt_scd_id }} = DBT_INTERNAL_DEST.{{ names.dbt_scd_id }}
when matched and {{ tablestore_snapshot_is_open(names) }} and DBT_INTERNAL_SOURCE.dbt_change_type in ('update', 'delete')
  then update set {{ names.dbt_valid_to }} = DBT_INTERNAL_SOURCE.{{ names.dbt_valid_to }}
when not matched and DBT_INTERNAL_SOURCE.dbt_change_type = 'insert'
  then insert ({{ columns | join(', ') }})
  values (DBT_INTERNAL_SOURCE.{{ columns | join(', DBT_INTERNAL_SOURCE.') }})
{%- endmacro -%}
