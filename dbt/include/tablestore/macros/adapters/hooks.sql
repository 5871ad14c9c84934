{#- Hooks of both kinds run; there is no transaction to commit in between. -#}
{%- macro run_hooks(hooks, inside_transaction=True) -%}
  {%- for hook in hooks | selectattr('transaction', 'equalto', inside_transaction) -%}
    {%- set rendered = render(hook.get('sql')) | trim -%}
    {%- if rendered | length > 0 -%}
      {%- call statement(auto_begin=inside_transaction) -%}
        {{ rendered }}
      {%- endcall -%}
    {%- endif -%}
  {%- endfor -%}
{%- endmacro -%}

{#- Files have no grants: say so where a project asks for some. -#}
{%- macro tablestore__apply_grants(relation, grant_config, should_revoke=True) -%}
  {%- if grant_config -%}
    {{ exceptions.warn("grants of " ~ relation.render() ~ " are ignored: set access rights on the warehouse's storage") }}
  {%- endif -%}
{%- endmacro -%}
