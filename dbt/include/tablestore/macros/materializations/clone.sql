{#- dbt clone: a table becomes a table that shares its files, a view a view; dbt-spark's asks for Delta. -#}
{%- materialization clone, adapter='tablestore' -%}
  {#- dbt's own drops what is there first: of a relation cloned onto itself nothing would be left -#}
  {%- set existing = load_cached_relation(this) -%}
  {%- if existing and defer_relation and this.is_same_name(defer_relation) -%}
    {%- do log("Target relation and defer relation are the same, skipping clone for relation: " ~ this.render(), info=True) -%}
    {{ return({'relations': [existing]}) }}
  {%- endif -%}
  {%- set other = load_cached_relation(defer_relation) if defer_relation else none -%}
  {%- if other and other.is_table and (flags.FULL_REFRESH or not existing) -%}
    {{ return(tablestore_clone_table(other)) }}
  {%- endif -%}
  {{ return(materialization_clone_default()) }}
{%- endmaterialization -%}


{#- What has the name goes when the clone is complete. -#}
{%- macro tablestore_clone_table(other) -%}
  {%- set target_relation = this.incorporate(type='table') -%}
  {%- set response = adapter.tablestore_clone(target_relation, other) -%}
  {%- do store_result('main', response=response, agate_table=none) -%}
  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=False) -%}
  {%- do persist_docs(target_relation, model) -%}
  {{ return({'relations': [target_relation]}) }}
{%- endmacro -%}
