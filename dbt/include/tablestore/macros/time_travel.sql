{#- Reading what is not the current rows: earlier versions and staged rows. -#}

{#- `{{ tablestore_at(ref('orders'), snapshot=5) }}`, the same as ref('orders').at(snapshot=5). -#}
{%- macro tablestore_at(relation, snapshot=none, tag=none, timestamp=none, branch=none) -%}
  {{- return(relation.at(snapshot, tag=tag, timestamp=timestamp, branch=branch)) -}}
{%- endmacro -%}

{#- The rows of a model that wait for their tests: `select * from {{ tablestore_staged(ref('orders')) }}`. -#}
{%- macro tablestore_staged(relation) -%}
  {{- return(adapter.tablestore_staged(relation)) -}}
{%- endmacro -%}

{#- dbt run-operation tablestore_publish: staged snapshots whose tests are green and that wait for nothing else. -#}
{%- macro tablestore_publish(nodes=[]) -%}
  {%- if execute -%}
    {%- for line in adapter.tablestore_publish(nodes) -%}
      {%- do log(line, info=True) -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro -%}
