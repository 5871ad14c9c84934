{#-
  The times of snapshots. dbt's own moment is an instant. Beside times without a zone it is the clock of UTC, as everywhere
  in dbt (decision 0094). So it takes the type of the table's valid_from: a UNION of TIMESTAMP_NTZ and TIMESTAMP would
  read the former in the session's time zone, and move those that a change of clocks leaves out.
-#}
{%- macro tablestore_set_snapshot_time(existing, names) -%}
  {%- if existing is not none -%}
    {%- for column in adapter.get_columns_in_relation(existing) if column.name | lower == names.dbt_valid_from | lower -%}
      {%- do model.update({'tablestore_snapshot_time': column.dtype | lower}) -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro -%}


{%- macro tablestore__snapshot_get_time() -%}
  {%- set type = model.get('tablestore_snapshot_time') -%}
  {%- if type in ('timestamp_ntz', 'date') -%}
    {{ 'cast(' if type == 'date' -}}
    timestampadd(microsecond, unix_micros({{ current_timestamp() | trim }}), timestamp_ntz '1970-01-01 00:00:00')
    {{- ' as date)' if type == 'date' }}
  {%- else -%}
    {{ current_timestamp() | trim }}
  {%- endif -%}
{%- endmacro -%}


{#-
  dbt-spark's hash with each TIMESTAMP as text in UTC: in the session's zone two instants have one text when clocks go back.
  NULL, and a | in a text, are written so that two keys never have one text; chr(92) is the backslash.
-#}
{%- macro tablestore__snapshot_hash_arguments(args) -%}
    md5({%- for arg in args -%}
        coalesce(replace(replace(if(typeof({{ arg }}) = 'timestamp',
          regexp_replace(get_json_object(to_json(named_struct('t', {{ arg }}), map('timeZone', 'UTC',
            'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')), '$.t'), '[.]?0+$', ''),
          cast({{ arg }} as string)), chr(92), concat(chr(92), chr(92))), '|', concat(chr(92), '|')), concat(chr(92), 'N'))
        {%- if not loop.last %} || '|' || {% endif %}
    {%- endfor -%})
{%- endmacro -%}
