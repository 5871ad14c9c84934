{#-
  The versions that a run of a dbt snapshot writes, as one SELECT: its rows are upserted by dbt_scd_id, no rows are no commit.
  Source and open versions are joined once. INVARIANT: versions of a key never overlap; each begins where the one before
  ends or later, whatever the clock and updated_at say. INVARIANT: NULL in a unique_key equals NULL: the values of a key
  are compared one by one by <=>, in dbt_unique_key_1 and so on: Spark sorts the fields of a struct faster than the struct.
  A key that the source gives twice is an error (TS2071). dbt_scd_id is computed for changed rows only.
-#}
{%- macro tablestore_snapshot_keys(unique_key) -%}
  {{- return([unique_key] if unique_key is string else unique_key | list) -}}
{%- endmacro -%}


{%- macro tablestore_snapshot_keyed(keys, rows) -%}
  select *{% for key in keys %}, {{ key }} as dbt_unique_key_{{ loop.index }}{% endfor %} from {{ rows }}
{%- endmacro -%}


{#- `text` for each column of the key, whose name stands for #. -#}
{%- macro tablestore_snapshot_each(keys, text, separator) -%}
  {%- for key in keys -%}
    {{ text | replace('#', 'dbt_unique_key_' ~ loop.index) }}{{ separator if not loop.last }}
  {%- endfor -%}
{%- endmacro -%}


{#- The first run: all rows are the first version of their key. -#}
{%- macro tablestore_snapshot_first_rows(strategy, sql) -%}
  {%- set keys = tablestore_snapshot_keys(strategy.unique_key) -%}
select * except(dbt_key_rows, {{ tablestore_snapshot_each(keys, '#', ', ') }}) from (
{{ tablestore_snapshot_counted(keys, '(\n' ~ build_snapshot_table(strategy, sql) ~ '\n)') }}
) where {{ tablestore_snapshot_is_single(keys) }}
{%- endmacro -%}


{#- Rows with their key, and how many have it. -#}
{%- macro tablestore_snapshot_counted(keys, rows) -%}
select *, count(*) over (partition by {{ tablestore_snapshot_each(keys, '#', ', ') }}) as dbt_key_rows from (
{{ tablestore_snapshot_keyed(keys, rows) }}
)
{%- endmacro -%}


{%- macro tablestore_snapshot_is_single(keys) -%}
if(dbt_key_rows = 1, true, raise_error(concat('TS2071 {{ model.name }}: ', to_json(named_struct(
  {%- for key in keys %}'key_{{ loop.index }}', dbt_unique_key_{{ loop.index }}{{ ', ' if not loop.last }}{% endfor %})))))
{%- endmacro -%}


{#- Whether a version is the current one of its key. -#}
{%- macro tablestore_snapshot_is_open(names) -%}
  {%- set current = config.get('dbt_valid_to_current') -%}
  ({{ names.dbt_valid_to }} is null{% if current %} or {{ names.dbt_valid_to }} = {{ current }}{% endif %})
{%- endmacro -%}


{#-
  A later run. `old`: columns of the table by name, `new`: of the query. `affected`: a view of the only keys whose source
  rows may differ from the run before; none: all are compared.
-#}
{%- macro tablestore_snapshot_rows(target_relation, names, strategy, sql, old, new, affected=none) -%}
  {%- set deletes, keys = tablestore_snapshot_deletes(strategy), tablestore_snapshot_keys(strategy.unique_key) -%}
  {%- set deleted = "coalesce(snapshotted_data." ~ names.dbt_is_deleted ~ " = 'True', false)"
        if names.dbt_is_deleted | lower in old else 'false' -%}
  {%- set join = 'left join' if deletes == 'ignore' else 'full outer join' -%}
  {%- set time, now = old[names.dbt_valid_from | lower].dtype, snapshot_get_time() | trim -%}
with snapshot_query as (
{{ sql }}
),
counted as (
{{ tablestore_snapshot_counted(keys, tablestore_snapshot_affected('snapshot_query', keys, affected)) }}
),
source_data as (
  select *, {{ strategy.updated_at }} as {{ names.dbt_updated_at }}, {{ strategy.updated_at }} as {{ names.dbt_valid_from }}
  from counted where {{ tablestore_snapshot_is_single(keys) }}
),
versions as (
{{ tablestore_snapshot_keyed(keys, tablestore_snapshot_affected(target_relation.render(), keys, affected)) }}
),
snapshotted_data as (
  select * from versions where {{ tablestore_snapshot_is_open(names) }}
),
ended as (
  select {{ tablestore_snapshot_each(keys, '#', ', ') }}, count(*) as versions, max({{ names.dbt_valid_from }}) as begun,
    max({{ names.dbt_valid_to }}) as ended
  from versions where not {{ tablestore_snapshot_is_open(names) }}
  group by {{ tablestore_snapshot_each(keys, '#', ', ') }}
),
changed as (
  select struct(source_data.*) as dbt_theirs, struct(snapshotted_data.*) as dbt_ours,
    case
      when snapshotted_data.{{ names.dbt_scd_id }} is null then array('begin')
      when source_data.dbt_key_rows is not null then array('end', 'begin')
      else array('end'{{ ", 'deletion'" if deletes == 'new_record' }})
    end as dbt_steps
  from source_data {{ join }} snapshotted_data
    on {{ tablestore_snapshot_each(keys, 'source_data.# <=> snapshotted_data.#', ' and ') }}
  where case
      when snapshotted_data.{{ names.dbt_scd_id }} is null then true
      when source_data.dbt_key_rows is null then not {{ deleted }}
      else {{ strategy.row_changed }} or {{ deleted }}
    end
),
named as (
  select dbt_theirs as theirs, dbt_ours as ours, dbt_steps as steps, {{ strategy.scd_id }} as new_id
  from (select dbt_theirs.*, dbt_theirs, dbt_ours, dbt_steps from changed)
),
moments as (
  select *, if(is_regular, begin, greatest(cast({{ now }} as {{ time }}), floor)) as moment
  from (
    select *, coalesce(begin > before and begin >= floor, before is null and theirs.dbt_key_rows is not null) as is_regular
    from (
      select theirs, ours, steps, new_id, ended.versions as ended_versions,
        cast(theirs.{{ names.dbt_valid_from }} as {{ time }}) as begin,
        coalesce(ours.{{ names.dbt_valid_from }}, ended.begun) as before,
        coalesce(ours.{{ names.dbt_valid_from }}, greatest(ended.begun, ended.ended)) as floor
      from named left join ended
        on ours.{{ names.dbt_scd_id }} is null and {{ tablestore_snapshot_each(keys, 'theirs.# <=> ended.#', ' and ') }}
    )
  )
)
select
{%- for name in old.keys() | list + new.keys() | reject('in', old) | list %}
  {{ tablestore_snapshot_value(name, old, new, names, now) }}{{ ',' if not loop.last }}
{%- endfor %}
from (select *, explode(steps) as step from moments)
{%- endmacro -%}


{#- The rows of a table or query whose key is among the affected ones. -#}
{%- macro tablestore_snapshot_affected(rows, keys, affected) -%}
  {%- if affected is none -%}
    {{ rows }}
  {%- else -%}
    {{ rows }} as r left semi join {{ affected }} as a on
    {%- for key in keys %} r.{{ key }} <=> a.{{ key }}{{ ' and' if not loop.last }}{% endfor %}
  {%- endif -%}
{%- endmacro -%}


{#- A column of a version that ends, begins, or is the record of a deletion. dbt's own times take the table's type. -#}
{%- macro tablestore_snapshot_value(name, old, new, names, now) -%}
  {%- set column = old[name] if name in old else new[name] -%}
  {%- set ours = 'ours.' ~ column.quoted if name in old else 'null' -%}
  {%- set theirs = 'theirs.' ~ new[name].quoted if name in new else 'null' -%}
  {%- if name == names.dbt_scd_id | lower -%}
    {%- set chained = "coalesce(" ~ ours ~ ", concat(new_id, ended_versions))" -%}
    case when step = 'end' then {{ ours }} when is_regular then new_id
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
