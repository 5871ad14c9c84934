{#-
  The versions that a run of a dbt snapshot writes, as one SELECT: its rows are upserted by dbt_scd_id, no rows are no commit.
  Source and open versions are joined once. INVARIANT: versions of a key never overlap; each begins where the one before
  ends or later, whatever the clock and updated_at say. INVARIANT: NULL in a unique_key equals NULL: keys are compared as
  structs. A key that the source gives twice is an error (TS2071).
-#}
{%- macro tablestore_snapshot_key(unique_key) -%}
  {%- set keys = unique_key if unique_key is iterable and unique_key is not string else [unique_key] -%}
  named_struct({%- for key in keys %}'key_{{ loop.index }}', {{ key }}{{ ', ' if not loop.last }}{% endfor -%})
{%- endmacro -%}


{#- The first run: all rows are the first version of their key. -#}
{%- macro tablestore_snapshot_first_rows(strategy, sql) -%}
select * except(dbt_unique_key, dbt_key_rows) from (
{{ tablestore_snapshot_keyed(strategy, build_snapshot_table(strategy, sql)) }}
) where {{ tablestore_snapshot_is_single() }}
{%- endmacro -%}


{#- The rows of a query with their key, and how many have it. -#}
{%- macro tablestore_snapshot_keyed(strategy, sql) -%}
select *, count(*) over (partition by dbt_unique_key) as dbt_key_rows from (
  select *, {{ tablestore_snapshot_key(strategy.unique_key) }} as dbt_unique_key from (
{{ sql }}
  )
)
{%- endmacro -%}


{%- macro tablestore_snapshot_is_single() -%}
if(dbt_key_rows = 1, true, raise_error(concat('TS2071 {{ model.name }}: ', to_json(dbt_unique_key))))
{%- endmacro -%}


{#- Whether a version is the current one of its key. -#}
{%- macro tablestore_snapshot_is_open(names) -%}
  {%- set current = config.get('dbt_valid_to_current') -%}
  ({{ names.dbt_valid_to }} is null{% if current %} or {{ names.dbt_valid_to }} = {{ current }}{% endif %})
{%- endmacro -%}


{#- A later run. `old`: columns of the table by name, `new`: of the query. -#}
{%- macro tablestore_snapshot_rows(target_relation, names, strategy, sql) -%}
  {%- set old, new = {}, {} -%}
  {%- for column in adapter.get_columns_in_relation(target_relation) -%}
    {%- do old.update({column.name | lower: column}) -%}
  {%- endfor -%}
  {%- for column in adapter.get_column_schema_from_query(get_empty_subquery_sql(sql)) -%}
    {%- do new.update({column.name | lower: column}) -%}
  {%- endfor -%}
  {%- set deletes = tablestore_snapshot_deletes(strategy) -%}
  {%- set deleted = "coalesce(snapshotted_data." ~ names.dbt_is_deleted ~ " = 'True', false)"
        if names.dbt_is_deleted | lower in old else 'false' -%}
  {%- set join = 'left join' if deletes == 'ignore' else 'full outer join' -%}
  {%- set time, now = old[names.dbt_valid_from | lower].dtype, snapshot_get_time() | trim -%}
with snapshot_query as (
{{ sql }}
),
source_data as (
  select *, {{ strategy.updated_at }} as {{ names.dbt_updated_at }}, {{ strategy.updated_at }} as {{ names.dbt_valid_from }},
    {{ strategy.scd_id }} as {{ names.dbt_scd_id }}
  from (
{{ tablestore_snapshot_keyed(strategy, 'select * from snapshot_query') }}
  ) where {{ tablestore_snapshot_is_single() }}
),
snapshotted_data as (
  select *, {{ tablestore_snapshot_key(strategy.unique_key) }} as dbt_unique_key
  from {{ target_relation.render() }} where {{ tablestore_snapshot_is_open(names) }}
),
ended as (
  select dbt_unique_key, count(*) as versions, max({{ names.dbt_valid_from }}) as begun, max({{ names.dbt_valid_to }}) as ended
  from (
    select *, {{ tablestore_snapshot_key(strategy.unique_key) }} as dbt_unique_key
    from {{ target_relation.render() }} where not {{ tablestore_snapshot_is_open(names) }}
  ) group by dbt_unique_key
),
changed as (
  select struct(source_data.*) as theirs, struct(snapshotted_data.*) as ours,
    case
      when snapshotted_data.{{ names.dbt_scd_id }} is null then array('begin')
      when source_data.{{ names.dbt_scd_id }} is not null then array('end', 'begin')
      else array('end'{{ ", 'deletion'" if deletes == 'new_record' }})
    end as steps
  from source_data {{ join }} snapshotted_data on source_data.dbt_unique_key = snapshotted_data.dbt_unique_key
  where case
      when snapshotted_data.{{ names.dbt_scd_id }} is null then true
      when source_data.{{ names.dbt_scd_id }} is null then not {{ deleted }}
      else {{ strategy.row_changed }} or {{ deleted }}
    end
),
moments as (
  select *, if(is_regular, begin, greatest(cast({{ now }} as {{ time }}), floor)) as moment
  from (
    select *, coalesce(begin > before and begin >= floor, before is null and theirs.{{ names.dbt_scd_id }} is not null) as is_regular
    from (
      select theirs, ours, steps, ended.versions as ended_versions, cast(theirs.{{ names.dbt_valid_from }} as {{ time }}) as begin,
        coalesce(ours.{{ names.dbt_valid_from }}, ended.begun) as before,
        coalesce(ours.{{ names.dbt_valid_from }}, greatest(ended.begun, ended.ended)) as floor
      from changed left join ended
        on ours.{{ names.dbt_scd_id }} is null and theirs.dbt_unique_key = ended.dbt_unique_key
    )
  )
)
select
{%- for name in old.keys() | list + new.keys() | reject('in', old) | list %}
  {{ tablestore_snapshot_value(name, old, new, names, now) }}{{ ',' if not loop.last }}
{%- endfor %}
from (select *, explode(steps) as step from moments)
{%- endmacro -%}


{#- A column of a version that ends, begins, or is the record of a deletion. dbt's own times take the table's type. -#}
{%- macro tablestore_snapshot_value(name, old, new, names, now) -%}
  {%- set column = old[name] if name in old else new[name] -%}
  {%- set ours = 'ours.' ~ column.quoted if name in old else 'null' -%}
  {%- set theirs = 'theirs.' ~ new[name].quoted if name in new else 'null' -%}
  {%- if name == names.dbt_scd_id | lower -%}
    {%- set chained = "coalesce(" ~ ours ~ ", concat(theirs." ~ names.dbt_scd_id ~ ", ended_versions))" -%}
    case when step = 'end' then {{ ours }} when is_regular then theirs.{{ names.dbt_scd_id }}
    else {{ snapshot_hash_arguments([chained, 'moment']) }} end
  {%- elif name == names.dbt_valid_from | lower -%}
    if(step = 'end', {{ ours }}, moment)
  {%- elif name == names.dbt_valid_to | lower -%}
    if(step = 'end', cast(moment as {{ column.dtype }}), cast({{ config.get('dbt_valid_to_current') or 'null' }} as {{ column.dtype }}))
  {%- elif name == names.dbt_updated_at | lower -%}
    cast(case step when 'end' then {{ ours }} when 'begin' then theirs.{{ names.dbt_updated_at }} else {{ now }} end as {{ column.dtype }})
  {%- elif name == names.dbt_is_deleted | lower -%}
    case step when 'end' then {{ ours }} when 'begin' then 'False' else 'True' end
  {%- else -%}
    if(step = 'begin', {{ theirs }}, {{ ours }})
  {%- endif %} as {{ column.quoted }}
{%- endmacro -%}


{#- What happens to rows that the source has no more. With --empty it was not read: a row that is missing was not deleted. -#}
{%- macro tablestore_snapshot_deletes(strategy) -%}
  {%- set deletes = strategy.hard_deletes or ('invalidate' if strategy.invalidate_hard_deletes else 'ignore') -%}
  {%- if flags.EMPTY and deletes != 'ignore' -%}
    {%- do exceptions.warn('snapshot ' ~ model.name ~ ': --empty keeps all current rows; no hard delete was applied') -%}
    {{- return('ignore') -}}
  {%- endif -%}
  {{- return(deletes) -}}
{%- endmacro -%}
