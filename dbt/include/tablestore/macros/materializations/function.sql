{#-
  dbt's resource type `function`: a SQL function of Spark, whose text is stored in the warehouse. dbt's own
  materialization chooses the macro by type and language. Spark has no functions in other languages and no
  aggregates in SQL: they are refused by name, before anything is created.
-#}
{%- macro tablestore__scalar_function_sql(target_relation) -%}
{{ tablestore__scalar_function_create_replace_signature_sql(target_relation) }}
{{ tablestore__scalar_function_body_sql() }}
{%- endmacro -%}


{%- macro tablestore__scalar_function_create_replace_signature_sql(target_relation) -%}
CREATE OR REPLACE FUNCTION {{ target_relation.render() }} ({{ formatted_scalar_function_args_sql() }})
RETURNS {{ model.returns.data_type }}
{{ scalar_function_volatility_sql() }}
{%- if config.persist_relation_docs() and model.description %}
COMMENT '{{ tablestore_escape(model.description) }}'
{%- endif -%}
{%- endmacro -%}


{%- macro tablestore__formatted_scalar_function_args_sql() -%}
  {%- for argument in model.arguments -%}
    {{ adapter.quote(argument.name) }} {{ argument.data_type }}
    {%- if argument.get('default_value') is not none %} DEFAULT {{ argument.default_value }}{% endif -%}
    {{ ', ' if not loop.last }}
  {%- endfor -%}
{%- endmacro -%}


{%- macro tablestore__scalar_function_volatility_sql() -%}
  {%- set volatility = model.config.get('volatility') -%}
  {%- if volatility == 'deterministic' -%}
DETERMINISTIC
  {%- elif volatility == 'non-deterministic' -%}
NOT DETERMINISTIC
  {%- elif volatility is not none -%}
    {%- do unsupported_volatility_warning(volatility) -%}
  {%- endif -%}
{%- endmacro -%}


{%- macro tablestore__scalar_function_body_sql() -%}
RETURN {{ model.compiled_code.strip().rstrip(';') }}
{%- endmacro -%}


{#- dbt makes the schemas of models; a function may have one of its own. Comments are in the statement. -#}
{%- macro tablestore__function_execute_build_sql(build_sql, existing_relation, target_relation) -%}
  {%- if not adapter.check_schema_exists(target_relation.database, target_relation.schema) -%}
    {%- do adapter.create_schema(target_relation.without_identifier()) -%}
  {%- endif -%}
  {%- call statement('main') -%}
    {{ build_sql }}
  {%- endcall -%}
  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
{%- endmacro -%}


{%- macro tablestore__scalar_function_python(target_relation) -%}
  {%- do adapter.tablestore_refuse_function(model.name, 'a Python function') -%}
{%- endmacro -%}

{%- macro tablestore__scalar_function_javascript(target_relation) -%}
  {%- do adapter.tablestore_refuse_function(model.name, 'a JavaScript function') -%}
{%- endmacro -%}

{%- macro tablestore__aggregate_function_sql(target_relation) -%}
  {%- do adapter.tablestore_refuse_function(model.name, 'an aggregate function') -%}
{%- endmacro -%}

{%- macro tablestore__aggregate_function_python(target_relation) -%}
  {%- do adapter.tablestore_refuse_function(model.name, 'a Python aggregate function') -%}
{%- endmacro -%}

{%- macro tablestore__aggregate_function_javascript(target_relation) -%}
  {%- do adapter.tablestore_refuse_function(model.name, 'a JavaScript aggregate function') -%}
{%- endmacro -%}


{#- Nodes of the graph by id. Models read tables through functions, which dbt keeps apart from its other nodes. -#}
{%- macro tablestore_nodes() -%}
  {%- set nodes = dict(graph.nodes or {}) -%}
  {%- do nodes.update(graph.get('functions') or {}) -%}
  {{- return(nodes) -}}
{%- endmacro -%}
