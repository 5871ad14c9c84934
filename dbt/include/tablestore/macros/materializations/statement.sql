{#-
  The statement that does by hand what the run did; it lies in target/run.
  Options become tblproperties, so the table is the same whoever makes it.
-#}
{%- macro tablestore_statement(relation, settings, plan) -%}
  {%- if plan.action == 'increment' -%}
    {{- tablestore_insert(relation, settings, plan) -}}
  {%- else -%}
    {{- tablestore_create(relation, settings, plan.select) -}}
  {%- endif -%}
{%- endmacro -%}


{%- macro tablestore_create(relation, settings, query) -%}
create or replace table {{ relation.render() }}
{{- tablestore_elements(settings.contract) }}
using tablestore
{%- if settings.table.partition_by %}
partitioned by ({{ get_quoted_csv(settings.table.partition_by) }})
{%- endif %}
{%- if settings.comment %}
comment '{{ tablestore_escape(settings.comment) }}'
{%- endif %}
{{- tablestore_properties(settings.table) }}
as
{{ query }}
{%- endmacro -%}


{#- Columns, keys and checks of an enforced contract. -#}
{%- macro tablestore_elements(contract) -%}
  {%- if contract.columns %} (
    {%- for name, type in contract.columns %}
  {{ adapter.quote(name) }} {{ type }}{{ ' not null' if name in contract.not_null }}{{ ',' if not loop.last }}
    {%- endfor -%}
    {%- if contract.primary_key %},
  primary key ({{ get_quoted_csv(contract.primary_key) }})
    {%- endif -%}
    {%- for name, expression in contract.checks %},
  constraint {{ name }} check ({{ expression }})
    {%- endfor %}
)
  {%- endif -%}
{%- endmacro -%}


{%- macro tablestore_properties(table) -%}
  {%- set properties = [] -%}
  {%- if table.primary_key -%}
    {%- do properties.append(('primary-key', table.primary_key | join(','))) -%}
  {%- endif -%}
  {%- do properties.extend(table.options) -%}
  {%- if properties %}
tblproperties (
    {%- for key, value in properties %}
  '{{ key }}' = '{{ tablestore_escape(value) }}'{{ ',' if not loop.last }}
    {%- endfor %}
)
  {%- endif -%}
{%- endmacro -%}


{%- macro tablestore_insert(relation, settings, plan) -%}
  {%- if settings.table.delete_when -%}
-- rows that mean delete: {{ settings.table.delete_when | replace('\n', ' ') }}
{% endif -%}
  {%- if plan.mode == 'replace' -%}
    {{- tablestore_delete(relation, plan) -}}
  {%- endif -%}
  {%- if plan.mode == 'overwrite_partitions' -%}
insert overwrite table {{ relation.render() }} partition ({{ get_quoted_csv(settings.table.partition_by) }})
  {%- elif plan.mode == 'overwrite_table' -%}
insert overwrite table {{ relation.render() }}
  {%- else -%}
insert into {{ relation.render() }}
  {%- endif %}
{{ plan.select }}
{%- endmacro -%}


{#- What goes before the new rows; the run does both in one snapshot and leaves equal rows alone. -#}
{%- macro tablestore_delete(relation, plan) -%}
  {%- set picks = plan.replaces -%}
delete from {{ relation.render() }} where {% if picks.column is defined -%}
  {{ adapter.quote(picks.column) }} >= timestamp '{{ picks.start }}' and {{ adapter.quote(picks.column) }} < timestamp '{{ picks.end }}'
  {%- else -%}
  ({{ get_quoted_csv(picks.columns) }}) in (select {{ get_quoted_csv(picks.columns) }} from (
{{ plan.select }}
))
  {%- endif %};
{% endmacro -%}


{%- macro tablestore_escape(text) -%}
  {{- (text | string).replace('\\', '\\\\').replace("'", "\\'") -}}
{%- endmacro -%}
