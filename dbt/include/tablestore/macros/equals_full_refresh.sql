{#- `data_tests: [equals_full_refresh]`: the table is what its query gives over the states that it was made from. -#}
{%- test equals_full_refresh(model) -%}
  {%- if not execute or flags.WHICH in ('compile', 'generate') -%} {#- nothing is compared: the rows may not be there -#}
    select 1 where false
  {%- elif flags.EMPTY -%} {#- the compiled SQL is not the one that made the rows -#}
    {%- do exceptions.warn('test ' ~ context.model.name ~ ' compared nothing: with --empty the SQL of ' ~ model.identifier ~ ' reads no rows') -%}
    select 1 where false
  {%- else -%}
    {{- adapter.tablestore_full_refresh_difference(model, context.model.unique_id) -}}
  {%- endif -%}
{%- endtest -%}
