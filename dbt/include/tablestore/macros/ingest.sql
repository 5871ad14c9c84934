{#-
  Change messages into the tables of sources with `meta.tablestore.cdc`, each up to now: `dbt run-operation tablestore_ingest`,
  or before every run by `on-run-start: "{{ tablestore_ingest() }}"`. `select`: names of sources, or source.table.
-#}
{%- macro tablestore_ingest(select=[]) -%}
  {%- if execute and flags.WHICH not in ('compile', 'generate') -%}
    {%- for line in adapter.tablestore_ingest(graph.sources, select) -%}
      {%- do log(line, info=True) -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro -%}
